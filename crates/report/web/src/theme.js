// Light and dark: the system's choice, unless the reader chooses. Print is always light.

const THEMES = ['system', 'light', 'dark'];
const KEY = 'wirestorm-report-theme';

export function makeTheme(plots) {
  const root = document.documentElement;
  const button = document.getElementById('theme');
  let theme = stored();

  const apply = () => {
    if (theme === 'system') delete root.dataset.theme;
    else root.dataset.theme = theme;
    button.textContent = `Theme: ${theme}`;
    plots.recolor();
  };
  button.hidden = false;
  button.addEventListener('click', () => {
    theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
    store(theme);
    apply();
  });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', apply);

  const print = (isPrint) => {
    root.toggleAttribute('data-print', isPrint);
    plots.setPrint(isPrint);
  };
  matchMedia('print').addEventListener('change', (event) => print(event.matches));
  addEventListener('beforeprint', () => print(true));
  addEventListener('afterprint', () => print(false));
  apply();
}

// A file that a browser opens from a disk may have no storage.
function stored() {
  try {
    const theme = localStorage.getItem(KEY);
    return THEMES.includes(theme) ? theme : 'system';
  } catch {
    return 'system';
  }
}

function store(theme) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // The choice lasts until the page is closed.
  }
}
