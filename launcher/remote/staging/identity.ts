/** Which ncclrun this is, exactly: the name under which hosts keep it in their caches. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { installationRoot, lacksPackagedKernels } from '../../local/host.ts';

export interface InstallationIdentity {
  /** As in package.json. An installation of the same version serves, whoever built it. */
  readonly version: string;
  /** Version, hash of what the build made, and Node's version: names the copy of this very installation. */
  readonly key: string;
}

/** Written by the build (scripts/identity.mjs): one line, version and hash. It is the last file of a bundle, so it shows that one is whole. */
export const IDENTITY_FILE = 'dist/identity';

/** Null where the build left none: such an installation cannot be copied. */
export function installedIdentity(): InstallationIdentity | null {
  try {
    const [version, hash] = readFileSync(join(installationRoot, IDENTITY_FILE), 'utf8').trim().split(' ');
    if (version === undefined || hash === undefined) return null;
    const kernels = lacksPackagedKernels() ? '-nokernels' : '';
    return { version, key: `${version}-${hash}${kernels}-node${process.versions.node}` };
  } catch {
    return null;
  }
}

/** Where a bundle has its Node, as an installation by npm does: bin/ncclrun-agent looks for it there. */
export const BUNDLED_NODE = `node_modules/node-linux-${process.arch}/bin/node`;
