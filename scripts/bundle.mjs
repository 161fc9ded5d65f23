// dist/bundle/: the command and the agent, one file each, for a fast start; and beside them what few starts need: reading and unpacking that
// would cost all others a few milliseconds. library.mjs is the module that programs import.
import { createHash } from 'node:crypto';
import { copyFileSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { leanSsh2 } from './lean-ssh2.mjs';

/** Packages, each with what of it is imported, by name. */
const packages = {
  yargs: { 'yargs/helpers': "require('yargs/helpers')" },
  ssh2: Object.fromEntries(
    ['lib/client.js', 'lib/protocol/keyParser.js', 'lib/agent.js'].map((path) => [
      `ssh2/${path}`,
      `require('ssh2/${path}')`,
    ]),
  ),
};
/** Of our own: what leads to other hosts, and what only some commands need. */
const apart = {
  remote: 'launcher/remote/remote-agent.ts',
  detect: 'worker/topology/file.ts',
  machine: 'worker/topology/machine.ts',
  search: 'control/planner/known-machine.ts',
  plan: 'launcher/cli/commands/plan.ts',
  replay: 'launcher/cli/commands/replay.ts',
  topo: 'launcher/cli/commands/topo.ts',
  doctor: 'launcher/cli/commands/doctor.ts',
  readings: 'worker/readings/collect.ts',
  tune: 'launcher/cli/commands/tune.ts',
  tables: 'worker/agent/measured-tables.ts',
  pmi: 'worker/agent/pmi-server.ts',
  'open-mpi': 'worker/agent/open-mpi.ts',
};

/** What the agent needs sometimes, too. */
const agentToo = ['detect', 'machine', 'tables', 'pmi', 'open-mpi'];

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
    js: "(function (exports, require, module, __filename, __dirname) {const __bundleUrl = require('node:url').pathToFileURL(__filename).href;let shared;",
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
  const inputs = new Set(['bundle', 'lean-ssh2', 'resolve'].map((name) => `scripts/${name}.mjs`)).add(
    'scripts/start.cjs',
  );
  const buildOf = async (options) => {
    const made = await build({ absWorkingDir: root, metafile: true, ...options });
    for (const path of Object.keys(made.metafile.inputs)) if (!/^<|:/.test(path)) inputs.add(path);
    return made;
  };
  const make = (name, options) => buildOf({ ...common, outfile: join(directory, `${name}.bundle.cjs`), ...options });
  mkdirSync(directory, { recursive: true });
  rmSync(madeOf, { force: true });

  const inputsOf = async (name, options) =>
    new Set(Object.keys((await make(name, { ...options, write: false })).metafile.inputs));
  const inMain = await inputsOf('main', main(isApart(root)));
  const inAgent = await inputsOf('agent', agent(isApart(root)));
  const inBoth = new Set([...inMain].filter((path) => inAgent.has(path)));
  const shared = {};
  for (const [name, entry] of Object.entries(apart)) {
    const contents = `exports.open = (modules) => ((shared = modules), require('./${entry}'));`;
    shared[name] = new Set();
    const plugins = [packagesApart, takesFromMain(root, agentToo.includes(name) ? inBoth : inMain, shared[name])];
    await make(name, { stdin: { contents, resolveDir: root }, plugins });
  }
  await make('main', main(isApart(root, shared)));
  await make('agent', agent(isApart(root, shared)));
  for (const [name, parts] of Object.entries(packages)) {
    const lines = Object.entries(parts).map(([path, part]) => `exports['${path}'] = ${part};\n`);
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
  for (const name of ['main', 'agent', ...Object.keys(apart), ...Object.keys(packages)])
    copyFileSync(join(root, 'scripts/start.cjs'), join(directory, `${name}.cjs`));
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

function main(plugin) {
  return { entryPoints: ['launcher/main.ts'], plugins: [packagesApart, plugin] };
}

function agent(plugin) {
  return { entryPoints: ['worker/agent/main.ts'], plugins: [plugin] };
}

/** Our own imports of such a package are taken from its file. */
const packagesApart = {
  name: 'packages apart',
  setup(builder) {
    builder.onResolve({ filter: new RegExp(`^(${Object.keys(packages).join('|')})(/|$)`) }, ({ path, importer }) => {
      if (importer === '' || importer.includes('/node_modules/')) return undefined;
      const name = path.split('/', 1)[0];
      if (!(path in packages[name]))
        return { errors: [{ text: `${path} is not among the parts of ${name} set apart` }] };
      return { path, namespace: 'package' };
    });
    builder.onResolve({ filter: /^\.\/\w+\.cjs$/, namespace: 'package' }, ({ path }) => ({ path, external: true }));
    builder.onLoad({ filter: /./, namespace: 'package' }, ({ path }) => ({
      contents: `module.exports = require('./${path.split('/', 1)[0]}.cjs')['${path}'];`,
    }));
  },
};

/** In main and agent: each of these is in a file of its own, and given those modules of main that it shares with it. */
function isApart(root, shared = {}) {
  const nameOf = new Map(Object.entries(apart).map(([name, entry]) => [entry, name]));
  return {
    name: 'apart',
    setup(builder) {
      builder.onResolve({ filter: /^\.\.?\/.*\.ts$/ }, ({ path, resolveDir }) => {
        const entry = relative(root, join(resolveDir, path));
        return nameOf.has(entry) ? { path: entry, namespace: 'apart' } : undefined;
      });
      builder.onResolve({ filter: /^\.\/[\w-]+\.cjs$/, namespace: 'apart' }, ({ path }) => ({ path, external: true }));
      builder.onLoad({ filter: /./, namespace: 'apart' }, ({ path: entry }) => {
        const name = nameOf.get(entry);
        const modules = [...(shared[name] ?? [])]
          .toSorted((one, other) => (one < other ? -1 : 1))
          .map((path) => `get '${path}'() { return require('./${path}'); }`);
        return {
          contents: `module.exports = require('./${name}.cjs').open({ ${modules.join(', ')} });`,
          resolveDir: root,
        };
      });
    },
  };
}

/** In those: what main (and the agent) has is main's, so that there is one of each; `shared` gets their names. */
function takesFromMain(root, inMain, shared) {
  return {
    name: 'taken from main',
    setup(builder) {
      builder.onResolve({ filter: /^\.\.?\/.*\.ts$/ }, ({ path, resolveDir }) => {
        const name = relative(root, join(resolveDir, path));
        if (!inMain.has(name)) return undefined;
        shared.add(name);
        return { path: name, namespace: 'shared' };
      });
      builder.onLoad({ filter: /./, namespace: 'shared' }, ({ path }) => ({
        contents: `module.exports = shared['${path}'];`,
      }));
    },
  };
}
