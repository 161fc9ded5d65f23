// Checks the binaries of a release against the promised glibc version, and splits off their debug information.
import { basename, join } from 'node:path';
import { end } from '../end.mjs';
import { need } from '../tool.mjs';

/** Node's own binaries require this version. */
const NEWEST = 'GLIBC_2.28';
const LIBRARIES = /^(lib(c|m|dl|pthread)\.so\.\d|ld-linux-[\w-]+\.so\.\d|libnccl\.so\.2)$/;

const numbersOf = (version) => version.replace(/^\w+_/, '').split('.').map(Number);
function isNewer(one, other) {
  const [a, b] = [numbersOf(one), numbersOf(other)];
  const place = a.findIndex((number, i) => number !== (b[i] ?? 0));
  return place !== -1 && a[place] > (b[place] ?? 0);
}

/** Checks every undefined symbol and every needed library. Ends the release with a message that names the first wrong one. */
export function checkBinary(path) {
  const name = basename(path);
  for (const [, library] of need('readelf', ['-d', path]).matchAll(/\(NEEDED\)[^[]*\[([^\]]+)\]/g))
    if (!LIBRARIES.test(library)) end(`${name} needs ${library}, which a release cannot count on`);
  for (const line of need('nm', ['-D', '-u', path]).split('\n')) {
    const [, kind, symbol, version] = /^\s*(\S) ([^@\s]+)@?@?(\S*)/.exec(line) ?? [];
    if (symbol === undefined || kind === 'w' || kind === 'v') continue;
    if (version === '' && !/^(napi|node_api|nccl|ncclrun)/.test(symbol))
      end(`${name} wants ${symbol}, which nothing has: node scripts/glibc-symbols.mjs ${symbol}`);
    if (version !== '' && !version.startsWith('GLIBC_')) end(`${name} wants ${symbol} of ${version}`);
    if (version !== '' && isNewer(version, NEWEST))
      end(`${name} wants ${symbol} of ${version}, which is newer than ${NEWEST}: native/release/compat.c`);
  }
}

/** Moves the debug information into `directory`; .gnu_debuglink in the binary names the file. */
export function takeDebugApart(path, directory) {
  const debug = join(directory, `${basename(path)}.debug`);
  const steps = [
    ['--only-keep-debug', path, debug],
    ['--strip-all', '--keep-section=.note.gnu.build-id', path],
    [`--add-gnu-debuglink=${debug}`, path],
  ];
  for (const argv of steps) need('objcopy', argv);
}
