// Builds everything a checkout needs: dist/ (types and modules for programs), dist/bundle/ (the command and the agent, one file each,
// for a fast start) and build/ (native code). Incremental: nothing to do costs about a second.
//
//   node scripts/build.mjs [--kernels ARCHITECTURES]
//
// ARCHITECTURES: compute capabilities without the dot, as 90 or 80,90; native: of the GPUs here; none. They are remembered.
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.mjs';
import { end } from './end.mjs';
import { writeIdentity } from './identity.mjs';
import { needPackages } from './packages.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
// npx runs `prepare` of the checkout it stands in when it first sees it: it starts what is there, and bin/ncclrun says what is not.
if (process.env.npm_lifecycle_event === 'prepare' && process.env.npm_command === 'exec') process.exit(0);

const [option, wanted, ...rest] = process.argv.slice(2);
if ((option !== undefined && option !== '--kernels') || rest.length > 0)
  end(`usage: node scripts/build.mjs [--kernels ARCHITECTURES]`);

needPackages(root);
const [{ buildNative, kernelsToBuild }, { recordCode }, { outputOf, run }] = await Promise.all([
  import('./native.mjs'),
  import('./record-code.mjs'),
  import('./tool.mjs'),
]);
const kernels = kernelsToBuild(root, wanted);
await Promise.all([
  run(root, join(root, 'node_modules/.bin/tsc'), ['-p', 'tsconfig.build.json'], 'npm install brings it'),
  bundle(root),
  buildNative(root, kernels),
]);

for (const name of [
  'ncclrun-aggregator',
  'ncclrun-guardian',
  'ncclrun-dial',
  'ncclrun-perf',
  'ncclrun-unpack',
  'ncclrun-watchdog',
]) {
  if (existsSync(join(root, 'build', name))) chmodSync(join(root, 'build', name), 0o755);
}
mkdirSync(join(root, 'dist/man'), { recursive: true });
const manual = outputOf(join(root, 'bin/ncclrun'), ['man']);
if (manual === null) console.error('ncclrun build: no manual page: ncclrun man says why');
else writeFileSync(join(root, 'dist/man/ncclrun.1'), manual);
await writeIdentity(root);
await recordCode(root);
if (kernels.told !== '') console.error(`ncclrun build: ${kernels.told}`);
