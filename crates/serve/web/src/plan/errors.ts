// Errors of a plan at the controls that they concern.

import type { ErrorAt } from '../documents.ts';

/** Shows errors at the controls with their paths. Returns those without a control. */
export function placeErrors(root: HTMLElement, errors: readonly ErrorAt[]): ErrorAt[] {
  for (const node of root.querySelectorAll<HTMLElement>('[aria-invalid]')) {
    node.removeAttribute('aria-invalid');
    node.removeAttribute('aria-errormessage');
  }
  for (const node of root.querySelectorAll<HTMLElement>('.problem.placed')) {
    node.classList.remove('placed');
    node.textContent = '';
  }
  const nodes = new Map<string, HTMLElement>();
  for (const node of root.querySelectorAll<HTMLElement>('[data-path]')) {
    const path = node.dataset['path'] ?? '';
    // An input is closer to the error than the row around it.
    const before = nodes.get(path);
    if (!before || (isControl(node) && !isControl(before))) nodes.set(path, node);
  }
  return errors.filter(({ path, message }) => {
    const node = nearest(nodes, path);
    if (!node) return true;
    const row = node.matches('.value-form, .field, .header')
      ? node
      : node.closest<HTMLElement>('.value-form, .field, .header');
    const problem = row?.querySelector<HTMLElement>(':scope > .problem');
    if (!row || !problem) return true;
    problem.classList.add('placed');
    problem.id ||= `problem-${path}`;
    problem.textContent = problem.textContent ? `${problem.textContent} ${message}` : message;
    const control = isControl(node) ? node : row.querySelector<HTMLElement>('input, select');
    control?.setAttribute('aria-invalid', 'true');
    control?.setAttribute('aria-errormessage', problem.id);
    for (let at = row.closest('details'); at; at = at.parentElement?.closest('details') ?? null)
      at.open = true;
    return false;
  });
}

/** Moves the focus to the control of an error. */
export function focusError(root: HTMLElement, path: string): void {
  const nodes = new Map(
    [...root.querySelectorAll<HTMLElement>('[data-path]')].map((node) => [
      node.dataset['path'] ?? '',
      node,
    ]),
  );
  const node = nearest(nodes, path);
  const control =
    node && (isControl(node) ? node : node.querySelector<HTMLElement>('input, select, button'));
  control?.focus();
  control?.scrollIntoView({ block: 'center' });
}

function nearest(nodes: ReadonlyMap<string, HTMLElement>, path: string): HTMLElement | null {
  for (let at = path; at; at = parent(at)) {
    const node = nodes.get(at);
    if (node) return node;
  }
  return null;
}

/** Returns the path of the object that has the last key of a path. */
function parent(path: string): string {
  return path.slice(0, Math.max(path.lastIndexOf('.'), path.lastIndexOf('['), 0));
}

function isControl(node: HTMLElement): boolean {
  return node.matches('input, select, textarea');
}
