import { makePlots } from './plots.js';
import { makeTables } from './tables.js';
import { makeTheme } from './theme.js';

const data = JSON.parse(document.getElementById('data').textContent);
makeTables();
const plots = makePlots(data);
makeTheme(plots);
document.documentElement.dataset.ready = 'true';
