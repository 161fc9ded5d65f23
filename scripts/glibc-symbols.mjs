// Regenerates native/release/glibc-PROCESSOR.txt: the glibc symbols that our binaries use, each with its newest version up to GLIBC_2.28.
// Run it when a release does not link because a symbol is not in the list:
//
//   node scripts/glibc-symbols.mjs [NAME...]    NAME: a symbol to add
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { need } from './tool.mjs';

const root = join(dirname(fileURLToPath(import.meta.url)), '..');
const processor = process.arch === 'arm64' ? 'aarch64' : 'x86_64';
const list = join(root, `native/release/glibc-${processor}.txt`);
const system = `/lib/${processor}-linux-gnu`;
const loader = processor === 'x86_64' ? 'ld-linux-x86-64' : 'ld-linux-aarch64';
const NEWEST = [2, 28];

/** Returns the library that had the symbol before glibc 2.34 moved nearly all symbols into libc.so.6; null: libc or libm. */
function libraryOf(name) {
  if (/^(__)?pthread_|^sem_/.test(name)) return ['libpthread', 0];
  if (/^dl(open|sym|error|close|addr|vsym|info)/.test(name)) return ['libdl', 2];
  return null;
}

/** Returns each exported symbol with its versions, and the size of data symbols in bytes. */
function offered(file) {
  const found = new Map();
  for (const line of need('objdump', ['-T', file]).split('\n')) {
    const match = /^[0-9a-f]+ .{7} (\S+)\s+([0-9a-f]+)\s+\(?(GLIBC_[\d.]+)\)?\s+(\S+)$/.exec(line);
    if (match === null) continue;
    const [, section, bytes, version, name] = match;
    const isData = section === '.data' || section === '.bss' || section.startsWith('.data.');
    const numbers = version.slice(6).split('.').map(Number);
    const entry = found.get(name) ?? { versions: [], bytes: isData ? Number.parseInt(bytes, 16) : 0 };
    entry.versions.push(numbers);
    found.set(name, entry);
  }
  return found;
}

const compare = (one, other) => one[0] - other[0] || one[1] - other[1] || (one[2] ?? 0) - (other[2] ?? 0);
const libraries = [
  ['libc', 6],
  ['libm', 6],
  [loader, 2],
].map(([name, number]) => ({ name, number, names: offered(`${system}/${name}.so.${number}`) }));

const binaries = [
  'libnccl.so.2',
  'ncclrun.node',
  'ncclrun-aggregator',
  'ncclrun-dial',
  'ncclrun-perf',
  'ncclrun-unpack',
];
const archives = ['libstdc++.a', 'libgcc_eh.a', 'libgcc.a'].map((name) =>
  need('g++', [`-print-file-name=${name}`]).trim(),
);
const wanted = new Set(process.argv.slice(2));
const undefinedNames = [
  ...binaries.map((name) => need('nm', ['-D', '-u', join(root, 'build', name)])),
  ...archives.map((file) => need('nm', ['-u', file])),
];
for (const line of undefinedNames.flatMap((names) => names.split('\n')))
  wanted.add(line.trim().split(' ').at(-1).split('@')[0]);
try {
  for (const line of readFileSync(list, 'utf8').split('\n')) if (/^[a-z]/.test(line)) wanted.add(line.split(' ')[3]);
} catch {
  // There is no list yet.
}

const lines = [];
for (const name of [...wanted].toSorted()) {
  const library = libraries.find(({ names }) => names.has(name));
  if (library === undefined) continue;
  const { versions, bytes } = library.names.get(name);
  const [version] = versions.filter((one) => compare(one, NEWEST) <= 0).toSorted((one, other) => compare(other, one));
  if (version === undefined) continue; // native/release/compat.c defines it
  const [at, number] = libraryOf(name) ?? [library.name, library.number];
  lines.push(`${at} ${number} GLIBC_${version.join('.')} ${name}${bytes > 0 ? ` ${bytes}` : ''}`);
}
const head =
  '# Of glibc 2.28: library, its number, version, name, and of data the bytes. Written by scripts/glibc-symbols.mjs.\n';
writeFileSync(list, `${head}${lines.join('\n')}\n`);
console.log(`${lines.length} names in ${list}`);
