// Builds the packages of a release. One commit and one set of tools give the same bytes on every machine:
//
//   npm run release [-- [--kernels DIRECTORY|none] [--out DIRECTORY] [--uncommitted]]
//
// The output directory (default: build/packages) gets the npm packages, one archive with everything, one with debug information, and SHA256SUMS.
// The script compiles the kernels for all supported GPUs, which takes 10 minutes on two cores, or takes compiled ones from --kernels; without nvcc
// it leaves them out. --uncommitted includes uncommitted changes, for a trial.
import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { writeIdentity } from './identity.mjs';
import { packForNpm, packForTar, writeSums } from './release/archives.mjs';
import { checkBinary, takeDebugApart } from './release/binaries.mjs';
import { NODE_PACKAGE, platformName, stageKernels, stageMain, stageNode, stagePlatform } from './release/packages.mjs';
import { end } from './end.mjs';
import { outputOf, run } from './tool.mjs';

const ARCHITECTURES = '80;90;100;120';
const root = join(dirname(fileURLToPath(import.meta.url)), '..');

const options = {
  kernels: { type: 'string' },
  out: { type: 'string' },
  uncommitted: { type: 'boolean', default: false },
};
const { values } = parseArgs({ options });
const out = resolve(values.out ?? join(root, 'build/packages'));
const changed = outputOf('git', ['-C', root, 'status', '--porcelain']);
if (changed === null) end('a release is made from a checkout: git status does not answer here');
if (changed !== '' && !values.uncommitted)
  end(`a release is made from what is committed, and this is not:\n${changed.trimEnd()}`);
const seconds = outputOf('git', ['-C', root, 'log', '-1', '--format=%ct']).trim();

await run(root, process.execPath, ['scripts/build.mjs'], 'the build');
await run(root, 'cmake', ['--build', 'build', '--parallel', '--target', 'release'], 'CMake makes the binaries', true);
const kernels = await findKernels();

const manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
const stage = mkdtempSync(join(tmpdir(), 'ncclrun-release-'));
try {
  rmSync(out, { recursive: true, force: true });
  mkdirSync(out, { recursive: true });
  const platform = join(stage, 'platform');
  const whole = `ncclrun-${manifest.version}-linux-${process.arch}`;
  const debug = `${whole}-debug`;
  mkdirSync(join(stage, debug));
  for (const binary of stagePlatform(root, platform, manifest)) {
    checkBinary(binary);
    takeDebugApart(binary, join(stage, debug));
  }
  await writeIdentity(platform, root, kernels ?? undefined);
  const others = [platformName()];
  if (kernels !== null) {
    others.push('@ncclrun/kernels');
    stageKernels(join(stage, 'kernels'), manifest, kernels);
    packForNpm(join(stage, 'kernels'), out);
  }
  stageMain(root, join(stage, 'main'), manifest, others);
  stageNode(root, join(stage, 'node'));
  packForNpm(join(stage, 'node'), out);
  packForNpm(platform, out);
  packForNpm(join(stage, 'main'), out);
  packWhole(whole);
  packForTar(stage, debug, join(out, `${debug}.tar.zst`), seconds);
  writeSums(out);
} finally {
  rmSync(stage, { recursive: true, force: true });
}
console.log(out);

/** Packs one directory that holds everything, Node included, for users without npm. */
function packWhole(name) {
  const directory = join(stage, name);
  for (const part of ['platform', 'main']) cpSync(join(stage, part), directory, { recursive: true });
  if (kernels !== null) {
    cpSync(join(stage, 'kernels'), join(directory, 'build/kernels'), { recursive: true });
    rmSync(join(directory, 'build/kernels/package.json'));
  }
  cpSync(join(stage, 'node'), join(directory, 'node_modules', NODE_PACKAGE), { recursive: true });
  packForTar(stage, name, join(out, `${name}.tar.zst`), seconds);
}

async function findKernels() {
  const given = values.kernels;
  if (given === 'none') return null;
  if (typeof given === 'string') {
    if (!existsSync(join(given, 'architectures'))) end(`--kernels ${given}: there is no list of architectures in it`);
    return resolve(given);
  }
  if (outputOf('nvcc', ['--version']) === null) {
    console.error(
      'ncclrun release: there is no nvcc, so there are no kernels in it; --kernels DIRECTORY takes those of another machine',
    );
    return null;
  }
  const build = join(root, 'build/release-kernels');
  const configure = [
    '-S',
    'native',
    '-B',
    build,
    `-DNCCLRUN_CUDA_ARCHITECTURES=${ARCHITECTURES}`,
    `-DNCCLRUN_KERNELS_OUT=${build}/kernels`,
  ];
  await run(root, 'cmake', configure, 'CMake', true);
  await run(root, 'cmake', ['--build', build, '--parallel', '--target', 'kernels'], 'nvcc', true);
  return join(build, 'kernels');
}
