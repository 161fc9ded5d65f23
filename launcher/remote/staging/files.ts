/** What a bundle holds: all that an agent, its ranks' engines and `ncclrun perf` need, as an installation has it. */
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { installationRoot, kernelsDirectory } from '../../local/host.ts';
import { kernelFiles, neededFiles } from './file-names.ts';
import { BUNDLED_NODE, IDENTITY_FILE } from './identity.ts';

interface BundleFile {
  /** Where it lies here. */
  readonly source: string;
  /** Its path in the bundle. */
  readonly path: string;
  readonly executable: boolean;
}

/** Sent ahead of a bundle. */
export const UNPACKER = 'build/ncclrun-unpack';

/** Where they are there: the code makes starts faster. */
const wished = [
  'agent',
  'commands',
  'foreign',
  'hosts',
  'main',
  'planning',
  'remote',
  'report',
  'ssh2',
  'topology',
].map((name) => `dist/bundle/${name}.code`);

function installed(path: string): Pick<BundleFile, 'source' | 'path'> {
  return { source: join(installationRoot, path), path };
}

/** Files in the order of unpacking. The identity is the last, so it proves that all others are present. */
export function bundleFiles(): BundleFile[] {
  const kernels = kernelFiles.map((path) => ({ source: join(kernelsDirectory(), basename(path)), path }));
  const optional = [...wished.map((path) => installed(path)), ...kernels].filter(({ source }) => existsSync(source));
  const ours = [...neededFiles.map((path) => installed(path)), ...optional, installed(IDENTITY_FILE)].map((file) => ({
    ...file,
    executable: /^bin\/|^build\/ncclrun-/.test(file.path),
  }));
  return [{ source: process.execPath, path: BUNDLED_NODE, executable: true }, ...ours];
}
