// Bundles the script and the style of reports into dist/, which is committed: cargo needs no npm.
import { build } from 'esbuild';
import { createHash } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';

const licence = readFileSync('node_modules/uplot/LICENSE', 'utf8');

await build({
  entryPoints: { report: 'src/main.js' },
  outdir: 'dist',
  bundle: true,
  minify: true,
  format: 'iife',
  target: 'es2021',
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: `/*! uPlot\n${licence.trim()}\n*/` },
});
await build({ entryPoints: ['src/report.css'], outdir: 'dist', bundle: true, minify: true, target: 'es2021' });

writeFileSync('dist/uPlot.LICENSE', licence);
for (const name of ['report.js', 'report.css']) {
  const hash = createHash('sha256').update(readFileSync(`dist/${name}`)).digest('base64');
  writeFileSync(`dist/${name}.sha256`, `sha256-${hash}\n`);
}
