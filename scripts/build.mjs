// Builds everything a checkout needs: dist/ (types and modules for programs), dist/bundle/ (the command and the agent, one file each,
// for a fast start) and build/ (native code). Incremental: nothing to do costs about a second.
import { spawnSync } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { bundle } from './bundle.mjs';
import { writeIdentity } from './identity.mjs';
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

await bundle(root);

const needed = 'install CMake 3.18 or newer and a C++20 compiler';
run('cmake', ['-S', 'native', '-B', 'build', '--log-level=WARNING'], needed);
run(
  'cmake',
  ['--build', 'build', '--parallel', String(availableParallelism()), '--', '--no-print-directory', '-s'],
  needed,
);
for (const name of ['ncclrun-guardian', 'ncclrun-dial', 'ncclrun-perf', 'ncclrun-unpack', 'ncclrun-watchdog']) {
  if (existsSync(join(root, 'build', name))) chmodSync(join(root, 'build', name), 0o755);
}

mkdirSync(join(root, 'dist/man'), { recursive: true });
const manual = spawnSync(process.execPath, [join(root, 'dist/bundle/main.cjs'), 'man'], { encoding: 'utf8' });
if (manual.status === 0) writeFileSync(join(root, 'dist/man/ncclrun.1'), manual.stdout);
else console.error(`ncclrun build: no manual page: ${manual.stderr}`);

await writeIdentity(root);
await recordCode(root);
