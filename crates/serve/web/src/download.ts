// Files from the server. The token is in a header, so that a link to them would not do.

import { button, element } from './element.ts';
import { done, note } from './notice.ts';

/** Longest file that the page holds in memory. */
const BYTES_MAX = 2 ** 31;
/** Reports that stay open in other tabs. */
const REPORTS_MAX = 8;
const SAVE_MS = 60_000;

const reports: string[] = [];

/** Saves data as a file. */
export function save(data: Blob, name: string): void {
  const url = URL.createObjectURL(data);
  const link = element('a', { href: url, download: name, hidden: true });
  document.body.append(link);
  link.click();
  link.remove();
  window.setTimeout(() => URL.revokeObjectURL(url), SAVE_MS);
}

/** Reads the body of a response, and reports its length so far. `stopped` ends it early. */
export async function readBody(
  response: Response,
  onBytes: (bytes: number) => void,
  stopped?: AbortSignal,
): Promise<Blob> {
  const reader = response.body!.getReader();
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let length = 0;
  stopped?.addEventListener('abort', () => void reader.cancel().catch(() => undefined));
  for (;;) {
    const { value, done: isDone } = await reader.read();
    if (isDone) break;
    parts.push(value as Uint8Array<ArrayBuffer>);
    length += value.length;
    onBytes(length);
    if (length > BYTES_MAX) {
      await reader.cancel();
      throw new Error('the file is longer than 2 GB: use the command line to download it');
    }
  }
  return new Blob(parts);
}

/** Opens a report in a new tab, in a frame without access to this page, its storage and the API. */
export function openReport(html: string, title: string): void {
  const frame = element('iframe', {
    sandbox: 'allow-scripts allow-popups allow-modals allow-downloads',
    srcdoc: html,
    title,
  });
  const style = element('link', {
    rel: 'stylesheet',
    href: `${location.origin}/assets/wirestorm.css`,
  });
  const page = document.implementation.createHTMLDocument(title);
  page.documentElement.classList.add('report-page');
  page.documentElement.lang = 'en';
  page.head.append(style);
  page.body.append(frame);
  const text = `<!doctype html>\n${page.documentElement.outerHTML}`;
  const url = URL.createObjectURL(new Blob([text], { type: 'text/html;charset=utf-8' }));
  reports.push(url);
  if (reports.length > REPORTS_MAX) URL.revokeObjectURL(reports.shift()!);
  const link = element('a', { href: url, target: '_blank', rel: 'noopener' }, 'Open the report');
  // A browser that blocks the new tab leaves the link in the message.
  note(
    'The report is in a new tab. ',
    link,
    ' ',
    button(
      'Save the report',
      () => {
        save(new Blob([html], { type: 'text/html' }), `${title}.html`);
        done(`Saved ${title}.html`);
      },
      { class: 'quiet small' },
    ),
  );
  link.click();
}
