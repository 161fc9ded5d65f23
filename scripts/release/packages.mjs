// What each package of a release consists of.
//
//   ncclrun               what programs import, with nothing to install beside it; the command is one that starts the next one's
//   @ncclrun/linux-x64    an installation as hosts have it: command, agent, engine. One directory, which is trusted, copied and found as a whole
//   @ncclrun/kernels      the GPUs' code, the same for every processor
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { end } from '../tool.mjs';

const BINARIES = ['libnccl.so.2', 'ncclrun.node', 'ncclrun-dial', 'ncclrun-perf', 'ncclrun-unpack'];
/** Linked whole: they serve every system as the build made them. */
const STATIC = ['ncclrun-guardian', 'ncclrun-watchdog'];
const DOCUMENTS = [
  'docs',
  'examples',
  'hostfiles',
  'ARCHITECTURE.md',
  'CHANGELOG.md',
  'CONTRIBUTING.md',
  'README.md',
  'LICENSE',
];

/** Of the checkout's manifest: all but what only building needs. */
const KEPT = ['name', 'version', 'description', 'license', 'type', 'engines', 'os', 'bin', 'man', 'exports'];

export function platformName() {
  return `@ncclrun/linux-${process.arch}`;
}

function write(directory, manifest) {
  writeFileSync(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`);
}

function common({ version, license, engines }, name, description) {
  return { name, version, description, license, type: 'module', engines, os: ['linux'] };
}

/** The installation, without kernels and Node. Returns where its binaries are, which have their debug information still. */
export function stagePlatform(root, directory, manifest) {
  const put = (name, from = join(root, name)) =>
    cpSync(from, join(directory, name), { recursive: true, dereference: true });
  mkdirSync(directory, { recursive: true });
  write(directory, {
    ...common(manifest, platformName(), `The command, agent and engine of ncclrun for Linux on ${process.arch}`),
    cpu: [process.arch],
    libc: ['glibc'],
    files: ['bin', 'build', 'dist', 'native'],
  });
  for (const name of ['LICENSE', 'bin', 'native/include']) put(name);
  // Compiled code, which differs from build to build, is left out: it only makes starts faster.
  for (const name of readdirSync(join(root, 'dist/bundle'))) if (/\.[cm]js$/.test(name)) put(`dist/bundle/${name}`);
  for (const name of BINARIES) put(`build/${name}`, join(root, 'build/release', name));
  for (const name of STATIC) put(`build/${name}`);
  return [...BINARIES, ...STATIC].map((name) => join(directory, 'build', name));
}

export function stageKernels(directory, manifest, kernels) {
  mkdirSync(directory, { recursive: true });
  write(directory, {
    ...common(
      manifest,
      '@ncclrun/kernels',
      `The code of ncclrun's engine for NVIDIA's GPUs: ${readFileSync(join(kernels, 'architectures'), 'utf8').trim()}`,
    ),
    files: ['*.fatbin', 'architectures'],
  });
  for (const name of readdirSync(kernels))
    if (name.endsWith('.fatbin') || name === 'architectures') cpSync(join(kernels, name), join(directory, name));
}

/** `others`: names of the packages that it brings. */
export function stageMain(root, directory, manifest, others) {
  mkdirSync(directory, { recursive: true });
  write(directory, {
    ...Object.fromEntries(KEPT.map((name) => [name, manifest[name]])),
    files: ['bin', 'dist', 'docs', 'examples', 'hostfiles', 'ARCHITECTURE.md', 'CHANGELOG.md', 'CONTRIBUTING.md'],
    optionalDependencies: {
      ...Object.fromEntries(others.map((name) => [name, manifest.version])),
      ...manifest.optionalDependencies,
    },
  });
  for (const name of [...DOCUMENTS, 'bin/ncclrun', 'dist/man/ncclrun.1'])
    cpSync(join(root, name), join(directory, name), { recursive: true });
  mkdirSync(join(directory, 'dist/worker'));
  cpSync(join(root, 'dist/bundle/library.mjs'), join(directory, 'dist/worker/index.js'));
  for (const file of declarationsFrom(root, join(root, 'dist/worker/index.d.ts')))
    cpSync(file, join(directory, relative(root, file)));
}

/** The file and all that it imports by relative paths. */
function declarationsFrom(root, first) {
  const found = new Set([first]);
  for (const file of found) {
    const code = readFileSync(file, 'utf8').replaceAll(/\/\*[^]*?\*\//g, '');
    for (const [, path] of code.matchAll(/(?:from|import\()\s*'([^']+)'/g)) {
      if (!path.startsWith('.')) {
        if (!path.startsWith('node:')) end(`${relative(root, file)} needs ${path}, which a release does not bring`);
        continue;
      }
      const next = join(dirname(file), path.replace(/\.(ts|js)$/, '.d.ts'));
      if (!existsSync(next)) end(`${relative(root, file)} imports ${path}, which is not there`);
      found.add(next);
    }
  }
  return found;
}
