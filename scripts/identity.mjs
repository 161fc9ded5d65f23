// Writes dist/identity: the version, and a hash of all that a host needs of this build. Hosts keep copies of ncclrun under that name
// (launcher/remote/staging). Node is not part of it: its version is added where the name is used.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const files = [
  'package.json',
  'bin/ncclrun',
  'bin/ncclrun-agent',
  'build/ncclrun-guardian',
  'build/ncclrun-dial',
  'build/ncclrun-perf',
  'build/libnccl.so.2',
  'build/ncclrun.node',
  'dist/bundle/agent.bundle.cjs',
  'dist/bundle/agent.cjs',
  'dist/bundle/main.bundle.cjs',
  'dist/bundle/main.cjs',
  'dist/bundle/ssh2.bundle.cjs',
  'dist/bundle/ssh2.cjs',
  'dist/bundle/yargs.bundle.cjs',
  'dist/bundle/yargs.cjs',
];
/** Enough to tell one's own builds apart. */
const HASH_DIGITS = 12;

export function writeIdentity(root) {
  const hash = createHash('sha256');
  for (const file of files) {
    const content = existsSync(join(root, file)) ? readFileSync(join(root, file)) : '';
    hash.update(`${file} ${content.length}\n`).update(content);
  }
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(root, 'dist/identity'), `${version} ${hash.digest('hex').slice(0, HASH_DIGITS)}\n`);
}
