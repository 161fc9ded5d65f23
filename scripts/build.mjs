// Builds everything a checkout needs: dist/ (types and modules for programs), dist/bundle/ (the command and the agent, one file each,
// for a fast start) and build/ (native code). Incremental: nothing to do costs about a second.
import { spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { writeIdentity } from './identity.mjs';
import { leanSsh2 } from './lean-ssh2.mjs';
import { recordCode } from './record-code.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
/** Runs a tool; what it says goes to the terminal. A tool that is missing or fails ends the build with one sentence. */
function run(tool, args, missing) {
  const { error, status } = spawnSync(tool, args, { cwd: root, stdio: 'inherit' });
  if (error === undefined && status === 0) return;
  const reason = error === undefined ? `${tool} ended with status ${status}` : `${tool}: ${error.message}`;
  console.error(`ncclrun build: ${reason}${error === undefined ? '' : `; ${missing}`}`);
  process.exit(1);
}

if (!existsSync(join(root, 'node_modules/esbuild'))) process.exit(0); // installed from a tarball: dist and build came with it

run(join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], 'npm install brings it');

const { build } = await import('esbuild');
mkdirSync(join(root, 'dist/bundle'), { recursive: true });
/** Packages that few starts need: each has a file of its own, so that the others do not read it. What of them is imported, by name. */
const apart = {
  yargs: { yargs: "require('yargs').default" },
  ssh2: Object.fromEntries(
    ['lib/client.js', 'lib/protocol/keyParser.js', 'lib/agent.js'].map((path) => [
      `ssh2/${path}`,
      `require('ssh2/${path}')`,
    ]),
  ),
};
/** Our own imports of such a package are taken from its file. */
const setApart = {
  name: 'set apart',
  setup(builder) {
    builder.onResolve({ filter: new RegExp(`^(${Object.keys(apart).join('|')})(/|$)`) }, ({ path, importer }) => {
      if (importer === '' || importer.includes('/node_modules/')) return undefined;
      const name = path.split('/', 1)[0];
      if (!(path in apart[name])) return { errors: [{ text: `${path} is not among the parts of ${name} set apart` }] };
      return { path, namespace: 'apart' };
    });
    builder.onResolve({ filter: /^\.\/\w+\.cjs$/, namespace: 'apart' }, ({ path }) => ({ path, external: true }));
    builder.onLoad({ filter: /./, namespace: 'apart' }, ({ path }) => ({
      contents: `module.exports = require('./${path.split('/', 1)[0]}.cjs')['${path}'];`,
    }));
  },
};
const common = {
  absWorkingDir: root,
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
    js: "(function (exports, require, module, __filename, __dirname) {const __bundleUrl = require('node:url').pathToFileURL(__filename).href;",
  },
  footer: { js: '})' },
  plugins: [leanSsh2],
  logLevel: 'warning',
};
await build({
  ...common,
  entryPoints: { 'main.bundle': 'launcher/main.ts', 'agent.bundle': 'worker/agent/main.ts' },
  outdir: 'dist/bundle',
  outExtension: { '.js': '.cjs' },
  plugins: [setApart],
});
for (const [name, parts] of Object.entries(apart)) {
  const contents = Object.entries(parts).map(([path, part]) => `exports['${path}'] = ${part};\n`);
  await build({
    ...common,
    stdin: { contents: contents.join(''), resolveDir: root },
    outfile: `dist/bundle/${name}.bundle.cjs`,
  });
}
for (const name of ['main', 'agent', ...Object.keys(apart)])
  copyFileSync(join(root, 'scripts/start.cjs'), join(root, `dist/bundle/${name}.cjs`));

const needed = 'install CMake 3.18 or newer and a C++20 compiler';
run('cmake', ['-S', 'native', '-B', 'build', '--log-level=WARNING'], needed);
run(
  'cmake',
  ['--build', 'build', '--parallel', String(availableParallelism()), '--', '--no-print-directory', '-s'],
  needed,
);
for (const name of ['ncclrun-guardian', 'ncclrun-dial', 'ncclrun-perf', 'ncclrun-unpack']) {
  if (existsSync(join(root, 'build', name))) chmodSync(join(root, 'build', name), 0o755);
}

mkdirSync(join(root, 'dist/man'), { recursive: true });
const manual = spawnSync(process.execPath, [join(root, 'dist/bundle/main.cjs'), 'man'], { encoding: 'utf8' });
if (manual.status === 0) writeFileSync(join(root, 'dist/man/ncclrun.1'), manual.stdout);
else console.error(`ncclrun build: no manual page: ${manual.stderr}`);

await writeIdentity(root);
await recordCode(root);
