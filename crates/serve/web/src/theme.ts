// Light and dark: the system's choice, unless the user chooses.

import { button, element } from './element.ts';

const THEMES = ['system', 'light', 'dark'] as const;
type Theme = (typeof THEMES)[number];
const KEY = 'wirestorm-theme';

const listeners = new Set<() => void>();
/** Its color is that of a variable, without `light-dark()`, which a canvas does not take. */
const probe = element('span', { hidden: true });

/** Calls a listener when the colors change, until `signal` aborts. */
export function onThemeChange(listener: () => void, signal: AbortSignal): void {
  listeners.add(listener);
  signal.addEventListener('abort', () => listeners.delete(listener));
}

/** Returns a color of the theme, such as `--grid`. */
export function color(name: string): string {
  if (!probe.isConnected) document.body.append(probe);
  probe.style.color = `var(${name})`;
  return getComputedStyle(probe).color;
}

/** Creates the button that switches between the themes. */
export function themeButton(): HTMLButtonElement {
  let theme = stored();
  const node = button(
    '',
    () => {
      theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length]!;
      store(theme);
      apply();
    },
    { class: 'quiet', id: 'theme' },
  );
  function apply(): void {
    const root = document.documentElement;
    if (theme === 'system') delete root.dataset['theme'];
    else root.dataset['theme'] = theme;
    node.textContent = `Theme: ${theme}`;
    listeners.forEach((listener) => listener());
  }
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () =>
    listeners.forEach((it) => it()),
  );
  apply();
  return node;
}

function stored(): Theme {
  try {
    const theme = localStorage.getItem(KEY) as Theme | null;
    return theme !== null && THEMES.includes(theme) ? theme : 'system';
  } catch {
    return 'system';
  }
}

function store(theme: Theme): void {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts until the page is closed.
  }
}
