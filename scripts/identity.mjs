// Writes dist/identity: the version, and a hash of all that a host needs of this build. Hosts keep copies of ncclrun under that name
// (launcher/remote/staging). Node is not part of it: its version is added where the name is used.
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/** Enough to tell one's own builds apart. */
const HASH_DIGITS = 12;

/** After tsc: the names are the launcher's own, as the checkout has built it. `root`: of the installation; `kernels`: their directory. */
export async function writeIdentity(root, checkout = root, kernels = join(root, 'build/kernels')) {
  const { kernelFiles, neededFiles } = await import(join(checkout, 'dist/launcher/remote/staging/file-names.js'));
  const hash = createHash('sha256');
  for (const file of [...neededFiles, ...kernelFiles]) {
    const path = kernelFiles.includes(file) ? join(kernels, basename(file)) : join(root, file);
    const content = existsSync(path) ? readFileSync(path) : '';
    hash.update(`${file} ${content.length}\n`).update(content);
  }
  const { version } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  writeFileSync(join(root, 'dist/identity'), `${version} ${hash.digest('hex').slice(0, HASH_DIGITS)}\n`);
}
