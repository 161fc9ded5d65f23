// dist/bundle/: the command and the agent, one file each, for a fast start; and beside them what few starts need: reading and unpacking that
// would cost all others a few milliseconds. library.mjs is the module that programs import.
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { leanSsh2 } from './lean-ssh2.mjs';
import { makeParts } from './make-parts.mjs';
import { packages } from './parts.mjs';

const common = {
  bundle: true,
  // Shorter, so that reading it stays below what sets off a garbage collection during the start.
  minifyWhitespace: true,
  minifyIdentifiers: true,
  minifySyntax: true,
  platform: 'node',
  format: 'cjs',
  target: 'node20',
  external: ['*.node', 'cpu-features', 'bufferutil', 'utf-8-validate'],
  define: { 'import.meta.url': '__bundleUrl' },
  // A function that start.cjs calls.
  banner: {
    js: "(function (exports, require, module, __filename, __dirname, load) {const __bundleUrl = require('node:url').pathToFileURL(__filename).href;let shared;",
  },
  footer: { js: '})' },
  logLevel: 'warning',
};

/** Skips the work unless one of the input files has changed. */
export async function bundle(root) {
  const directory = join(root, 'dist/bundle');
  const madeOf = join(directory, 'made-of');
  if (isAsMade(root, madeOf)) return;
  const { build } = await import('esbuild');
  const inputs = new Set(
    ['apart', 'bundle', 'lean-ssh2', 'make-parts', 'parts', 'resolve'].map((name) => `scripts/${name}.mjs`),
  ).add('scripts/start.cjs');
  const buildOf = async (options) => {
    const made = await build({ absWorkingDir: root, metafile: true, ...options });
    for (const path of Object.keys(made.metafile.inputs)) if (!/^<|:/.test(path)) inputs.add(path);
    return made;
  };
  const make = (name, options) => buildOf({ ...common, outfile: join(directory, `${name}.bundle.cjs`), ...options });
  rmSync(directory, { recursive: true, force: true }); // with what other versions have left
  mkdirSync(directory, { recursive: true });

  await makeParts(root, make);
  for (const [name, ways] of Object.entries(packages)) {
    const lines = Object.entries(ways).map(([path, part]) => `exports['${path}'] = ${part};\n`);
    await make(name, { stdin: { contents: lines.join(''), resolveDir: root }, plugins: [leanSsh2] });
  }
  await buildOf({
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node22',
    legalComments: 'none',
    logLevel: 'warning',
    entryPoints: ['worker/index.ts'],
    outfile: join(directory, 'library.mjs'),
  });
  await makePage(root, directory, buildOf, inputs);
  await makeStillPage('doctor', root, directory, buildOf, inputs);
  copyFileSync(join(root, 'scripts/resolve.mjs'), join(directory, 'resolve.mjs'));
  for (const name of ['main', 'agent']) copyFileSync(join(root, 'scripts/start.cjs'), join(directory, `${name}.cjs`));
  writeFileSync(madeOf, stateOf(root, [...inputs].toSorted()));
}

/** replay.html: the page of `ncclrun replay --html` without its data. What it may run is named by hashes, and it may load nothing. */
async function makePage(root, directory, buildOf, inputs) {
  const options = { bundle: true, minify: true, write: false, logLevel: 'warning', legalComments: 'none' };
  const codeOf = async (entry, more) => {
    const { outputFiles } = await buildOf({ ...options, entryPoints: [entry], ...more });
    return outputFiles[0].text.trim().replaceAll('</', '<\\/');
  };
  const script = await codeOf('page/main.ts', { format: 'iife', target: 'es2022' });
  const style = await codeOf('page/page.css', { target: 'chrome110' });
  const policy = `default-src 'none'; script-src ${hashOf(script)}; style-src ${hashOf(style)}; base-uri 'none'; form-action 'none'`;
  const parts = { policy, style, script };
  const page = readFileSync(join(root, 'page/page.html'), 'utf8').replaceAll(
    /<!--(policy|style|script)-->/g,
    (_, name) => parts[name],
  );
  inputs.add('page/page.html');
  writeFileSync(join(directory, 'replay.html'), page);
}

/** NAME.html, a page without a script: its style alone is allowed, by its hash. */
async function makeStillPage(name, root, directory, buildOf, inputs) {
  const options = { bundle: true, minify: true, write: false, logLevel: 'warning', target: 'chrome110' };
  const { outputFiles } = await buildOf({ ...options, entryPoints: [`page/${name}.css`] });
  const style = outputFiles[0].text.trim();
  const policy = `default-src 'none'; style-src ${hashOf(style)}; base-uri 'none'; form-action 'none'`;
  const page = readFileSync(join(root, `page/${name}.html`), 'utf8')
    .replace('<!--policy-->', () => policy)
    .replace('<!--style-->', () => style);
  inputs.add(`page/${name}.html`);
  writeFileSync(join(directory, `${name}.html`), page);
}

/** As a content security policy names what it allows. */
function hashOf(text) {
  return `'sha256-${createHash('sha256').update(text).digest('base64')}'`;
}

/** Returns a line per file: modification time, size, path. */
function stateOf(root, paths) {
  const line = (path) => {
    const found = statSync(join(root, path), { throwIfNoEntry: false });
    return `${found?.mtimeMs} ${found?.size} ${path}\n`;
  };
  return paths.map(line).join('');
}

function isAsMade(root, madeOf) {
  try {
    const before = readFileSync(madeOf, 'utf8');
    const paths = Array.from(before.matchAll(/^\S+ \S+ (.*)$/gm), ([, path]) => path);
    return before === stateOf(root, paths);
  } catch {
    return false;
  }
}
