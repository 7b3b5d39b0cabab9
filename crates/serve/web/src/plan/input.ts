// A text input for a place of the plan.

import { element } from '../element.ts';
import type { Slot } from './document.ts';

/** Creates the input. `write` gets each text that the user types. */
export function placeInput(
  place: Slot,
  attributes: Record<string, unknown>,
  write: (text: string) => void,
): HTMLInputElement {
  const { value } = place;
  const input = element('input', {
    type: 'text',
    spellcheck: 'false',
    autocomplete: 'off',
    'data-path': place.path,
    'data-key': `${place.path}:input`,
    value:
      value === undefined || value === null
        ? ''
        : typeof value === 'object'
          ? JSON.stringify(value)
          : String(value),
    ...attributes,
    on: { input: () => write(input.value) },
  });
  return input;
}
