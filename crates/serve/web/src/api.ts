// Requests to the API, typed from its OpenAPI document.

import type { ErrorDocument, ErrorAt, Operations } from './documents.ts';

export const BASE = '/api/v1';

export type Operation = keyof Operations;

/** An error that the server answered, or that kept the request from the server. */
export class ApiError extends Error {
  constructor(
    /** HTTP status; 0 if there was no answer. */
    readonly status: number,
    readonly document: ErrorDocument,
  ) {
    super(document.message);
  }

  get errors(): readonly ErrorAt[] {
    return this.document.errors ?? [];
  }

  /** The message and all errors with their places. */
  get text(): string {
    return [
      this.message,
      ...this.errors.map(({ path, message }) => (path ? `${path}: ${message}` : message)),
    ].join('\n');
  }
}

/** Who sends the requests. */
export interface Credentials {
  token: string | null;
  /** Name of the user, for a server without users. */
  user: string | null;
  session: string;
}

export interface Request<K extends Operation> {
  /** Values of the parameters in the path. */
  path?: Record<string, string>;
  query?: Operations[K]['query'];
  body?: Operations[K]['body'];
  signal?: AbortSignal;
}

export class Api {
  /** Called after an answer that refuses the token. */
  onUnauthorized: (() => void) | null = null;

  constructor(public credentials: Credentials) {}

  /** Sends a request and returns the document in the answer. */
  async call<K extends Operation>(
    operation: K,
    request: Request<K> = {},
  ): Promise<Operations[K]['answer']> {
    const response = await this.send(operation, request);
    if (response.status === 204) return undefined as Operations[K]['answer'];
    const isJson = response.headers.get('content-type')?.includes('json') === true;
    const answer = isJson ? response.json() : response.text();
    return (await answer.catch((error: unknown) => {
      throw unreachable(error);
    })) as Operations[K]['answer'];
  }

  /** Sends a request and returns the response, whose body was not read. */
  async send<K extends Operation>(operation: K, request: Request<K> = {}): Promise<Response> {
    const [method] = operation.split(' ') as [string];
    const headers = this.headers();
    let body: BodyInit | undefined;
    if (request.body !== undefined) {
      const isText = typeof request.body === 'string';
      headers.set('content-type', isText ? 'text/plain' : 'application/json');
      body = isText ? (request.body as string) : JSON.stringify(request.body);
    }
    let response: Response;
    try {
      response = await fetch(this.url(operation, request), {
        method,
        headers,
        body: body ?? null,
        signal: request.signal ?? null,
        cache: 'no-store',
        credentials: 'omit',
      });
    } catch (error) {
      throw unreachable(error);
    }
    if (response.ok) return response;
    throw await this.refused(response);
  }

  url<K extends Operation>(operation: K, request: Request<K> = {}): string {
    const template = operation.slice(operation.indexOf(' ') + 1);
    const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
      encodeURIComponent(request.path?.[name] ?? ''),
    );
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(request.query ?? {})) {
      if (value !== undefined && value !== null && value !== '') query.set(name, String(value));
    }
    const text = query.toString();
    return BASE + path + (text ? `?${text}` : '');
  }

  headers(): Headers {
    const headers = new Headers();
    const { token, user, session } = this.credentials;
    if (token) headers.set('authorization', `Bearer ${token}`);
    if (session) headers.set('wirestorm-session', session);
    if (user && !token) headers.set('wirestorm-user', user);
    return headers;
  }

  /** Uploads a file, and reports the share that was sent. */
  upload(
    name: string,
    file: Blob,
    onProgress: (share: number) => void,
    signal: AbortSignal,
  ): Promise<void> {
    return new Promise((resolve, reject) => {
      const request = new XMLHttpRequest();
      request.open('PUT', this.url('PUT /captures/{name}', { path: { name } }));
      this.headers().forEach((value, header) => request.setRequestHeader(header, value));
      request.setRequestHeader('content-type', 'application/octet-stream');
      request.upload.addEventListener('progress', (event) => {
        if (event.lengthComputable && event.total > 0) onProgress(event.loaded / event.total);
      });
      request.addEventListener('load', () => {
        if (request.status >= 200 && request.status < 300) resolve();
        else reject(this.noted(errorOf(request.status, request.responseText)));
      });
      request.addEventListener('error', () => reject(unreachable(null)));
      request.addEventListener('abort', () => reject(new DOMException('cancelled', 'AbortError')));
      signal.addEventListener('abort', () => request.abort());
      request.send(file);
    });
  }

  /** Returns the error of a response that is no success. */
  async refused(response: Response): Promise<ApiError> {
    const text = await response.text().catch(() => '');
    return this.noted(errorOf(response.status, text));
  }

  private noted(error: ApiError): ApiError {
    if (error.status === 401) this.onUnauthorized?.();
    return error;
  }
}

function errorOf(status: number, text: string): ApiError {
  try {
    const document = JSON.parse(text) as ErrorDocument;
    if (typeof document.message === 'string') return new ApiError(status, document);
  } catch {
    // No document of the server: a proxy answered.
  }
  // Gateways answer so while the server is away.
  if (status === 502 || status === 503 || status === 504) return noAnswer();
  return new ApiError(status, {
    code: 'internal',
    message: `the server answered with HTTP status ${status}`,
  });
}

function unreachable(error: unknown): unknown {
  return isAbort(error) ? error : noAnswer();
}

function noAnswer(): ApiError {
  return new ApiError(0, {
    code: 'internal',
    message: 'the server does not answer: check that it runs, and the network',
  });
}

/** Returns whether an error is the end of a request that the page itself cancelled. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

/** Returns the message of an error, for the user. */
export function messageOf(error: unknown): string {
  if (error instanceof ApiError) return error.text;
  return error instanceof Error ? error.message : String(error);
}
