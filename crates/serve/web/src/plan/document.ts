// The plan that is edited: its text, and its document if the text is JSON.

export type Json = null | boolean | number | string | Json[] | JsonObject;
export interface JsonObject {
  [key: string]: Json;
}

const DRAFT_KEY = 'wirestorm-plan';
/** Longest draft that session storage keeps. */
const DRAFT_CHARACTERS_MAX = 1 << 20;

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** A place in a document. `undefined` means that the key is absent. */
export class Slot {
  constructor(
    /** Path as errors name it, such as `flows[0].rate`. */
    readonly path: string,
    private readonly read: () => Json | undefined,
    private readonly write: (value: Json | undefined) => void,
  ) {}

  get value(): Json | undefined {
    return this.read();
  }

  set(value: Json | undefined): void {
    this.write(value);
  }

  /** Returns the value as an object; an empty one if it is something else. */
  get object(): JsonObject {
    const value = this.read();
    return isObject(value) ? value : {};
  }

  /** Returns the value as a list; an empty one if it is something else. */
  get list(): Json[] {
    const value = this.read();
    return Array.isArray(value) ? value : [];
  }

  key(name: string): Slot {
    const path = this.path ? `${this.path}.${name}` : name;
    return new Slot(
      path,
      () => (Object.hasOwn(this.object, name) ? this.object[name] : undefined),
      (value) => {
        const object = { ...this.object };
        if (value === undefined) delete object[name];
        else object[name] = value;
        this.write(object);
      },
    );
  }

  at(index: number): Slot {
    return new Slot(
      `${this.path}[${index}]`,
      () => this.list[index],
      (value) => {
        const list = [...this.list];
        if (value === undefined) list.splice(index, 1);
        else list[index] = value;
        this.write(list);
      },
    );
  }
}

/** A plan that was opened or is new. The draft outlives a reload of the page. */
export class Plan {
  /** Name of the stored plan; empty for a new one. */
  name = '';
  /** Document for the forms; null if the text is YAML, or no plan of streams. */
  document: JsonObject | null = null;
  /** Why there are no forms. */
  reason = '';
  private source = '';
  private readonly listeners = new Set<() => void>();

  constructor() {
    this.load(serialize(example()), '');
  }

  get text(): string {
    return this.source;
  }

  /** Root of the document. */
  readonly root = new Slot(
    '',
    () => this.document ?? undefined,
    (value) => {
      this.document = isObject(value) ? value : {};
      this.source = serialize(this.document);
      this.changed();
    },
  );

  /** Replaces the text, which the user typed or the server sent. */
  load(text: string, name: string): void {
    this.name = name;
    this.setText(text);
  }

  setText(text: string): void {
    this.source = text;
    [this.document, this.reason] = parse(text);
    this.changed();
  }

  subscribe(listener: () => void, signal: AbortSignal): void {
    this.listeners.add(listener);
    signal.addEventListener('abort', () => this.listeners.delete(listener));
  }

  private changed(): void {
    try {
      if (this.source.length <= DRAFT_CHARACTERS_MAX)
        sessionStorage.setItem(DRAFT_KEY, JSON.stringify([this.name, this.source]));
    } catch {
      // The draft lasts until the page is closed.
    }
    for (const listener of [...this.listeners]) listener();
  }

  /** Returns the plan of this tab. */
  static restore(): Plan {
    // Read first: a new plan replaces the draft.
    let text: string | null = null;
    try {
      text = sessionStorage.getItem(DRAFT_KEY);
    } catch {
      // Without storage there is no draft.
    }
    const plan = new Plan();
    if (text !== null) {
      try {
        const [name, source] = JSON.parse(text) as [string, string];
        plan.load(source, name);
      } catch {
        // Another version of the page wrote it.
      }
    }
    return plan;
  }
}

/** Returns the plan of a new flow between two ports. */
export function example(): JsonObject {
  return {
    ports: [{ name: 'left' }, { name: 'right' }],
    flows: [newFlow('flow 1', 'left', 'right')],
  };
}

export function newFlow(name: string, tx: string, rx: string | null): JsonObject {
  return {
    name,
    tx,
    ...(rx === null ? {} : { rx }),
    packet: [
      { ethernet: { dst: '02:00:00:00:00:02', src: '02:00:00:00:00:01' } },
      { ipv4: { src: '10.0.0.1', dst: '10.0.0.2' } },
      { udp: { src_port: 1024, dst_port: 7 } },
    ],
    size: 128,
    rate: '1kpps',
    duration: 'continuous',
    metrics: { enable: true },
  };
}

/** Serializes a document; values without nested ones stay on a line. */
export function serialize(value: Json): string {
  return `${write(value, '')}\n`;
}

function write(value: Json, indent: string): string {
  const flat = JSON.stringify(value);
  if (typeof value !== 'object' || value === null || flat.length + indent.length <= 88)
    return spaced(value);
  const inner = `${indent}  `;
  if (Array.isArray(value))
    return `[\n${value.map((it) => inner + write(it, inner)).join(',\n')}\n${indent}]`;
  const lines = Object.entries(value).map(
    ([key, it]) => `${inner}${JSON.stringify(key)}: ${write(it, inner)}`,
  );
  return `{\n${lines.join(',\n')}\n${indent}}`;
}

function spaced(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(spaced).join(', ')}]`;
  if (isObject(value))
    return `{${Object.entries(value)
      .map(([key, it]) => `${JSON.stringify(key)}: ${spaced(it)}`)
      .join(', ')}}`;
  return JSON.stringify(value);
}

function parse(text: string): [JsonObject | null, string] {
  let value: Json;
  try {
    value = JSON.parse(text, exactly) as Json;
  } catch (error) {
    const looksLikeJson = /^\s*[{[]/.test(text);
    return [
      null,
      looksLikeJson
        ? `The text is no valid JSON: ${(error as Error).message}`
        : 'The text is YAML.',
    ];
  }
  if (!isObject(value)) return [null, 'The text is no plan: expected an object.'];
  const hasFlows = value['flows'] === undefined || Array.isArray(value['flows']);
  const hasPorts = value['ports'] === undefined || Array.isArray(value['ports']);
  if (!hasFlows || !hasPorts || value['templates'] !== undefined)
    return [null, 'The text is no plan of streams.'];
  if (
    ![
      ...((value['flows'] as Json[] | undefined) ?? []),
      ...((value['ports'] as Json[] | undefined) ?? []),
    ].every(isObject)
  ) {
    return [null, 'The text is no plan of streams: expected objects in ports and flows.'];
  }
  return [value, ''];
}

/** Keeps integers that a number cannot hold, as texts: plans take both. */
function exactly(_: string, value: unknown, context?: { source?: string }): unknown {
  const isRounded =
    typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value);
  return isRounded && context?.source && /^\d+$/.test(context.source) ? context.source : value;
}
