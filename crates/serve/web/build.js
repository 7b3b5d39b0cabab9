// Checks the types and bundles the page into dist/, which is committed: cargo needs no npm.
import { build } from 'esbuild';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';

import { typesOfDocument } from './types.js';

if (readFileSync('src/documents.ts', 'utf8') !== typesOfDocument()) {
  throw new Error(
    'src/documents.ts differs from schemas/wirestorm.openapi.1.json: run npm run types',
  );
}
execFileSync('node_modules/.bin/tsc', ['--noEmit'], { stdio: 'inherit' });

const licence = readFileSync('node_modules/uplot/LICENSE', 'utf8');
// The first ones with `light-dark()`.
const target = ['chrome123', 'firefox120', 'safari17.5'];

await build({
  entryPoints: { wirestorm: 'src/main.ts' },
  outdir: 'dist',
  bundle: true,
  minify: true,
  format: 'iife',
  target,
  charset: 'utf8',
  legalComments: 'none',
  banner: { js: `/*! uPlot\n${licence.trim()}\n*/` },
});
await build({
  entryPoints: { wirestorm: 'src/style/main.css' },
  outdir: 'dist',
  bundle: true,
  minify: true,
  target,
  // Icons are in the style.
  loader: { '.svg': 'dataurl' },
});
writeFileSync('dist/index.html', readFileSync('src/index.html'));
writeFileSync('dist/icon.svg', readFileSync('src/icon.svg'));
writeFileSync('dist/uPlot.LICENSE', licence);
