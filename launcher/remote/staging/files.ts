/** What a bundle holds: all that an agent, its ranks' engines and `ncclrun perf` need, as an installation has it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { installationRoot } from '../local.ts';
import { kernelFiles, neededFiles } from './file-names.ts';
import { BUNDLED_NODE, IDENTITY_FILE } from './identity.ts';

export interface BundleFile {
  /** Where it lies here. */
  readonly source: string;
  /** Its path in the bundle. */
  readonly path: string;
  readonly executable: boolean;
}

/** Sent ahead of a bundle. */
export const UNPACKER = 'build/ncclrun-unpack';

/** Where they are there. The code makes starts faster. */
const wished = [
  ...['agent', 'machine', 'main', 'remote', 'ssh2'].map((name) => `dist/bundle/${name}.code`),
  ...kernelFiles,
];

/** In the order in which they are unpacked: the identity, last, tells that all the others are there. */
export function bundleFiles(): BundleFile[] {
  const names = [...neededFiles, ...wished.filter((path) => existsSync(join(installationRoot, path))), IDENTITY_FILE];
  const ours = names.map((path) => ({
    source: join(installationRoot, path),
    path,
    executable: /^bin\/|^build\/ncclrun-/.test(path),
  }));
  return [{ source: process.execPath, path: BUNDLED_NODE, executable: true }, ...ours];
}
