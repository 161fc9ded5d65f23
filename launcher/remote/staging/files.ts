/** What a bundle holds: all that an agent, its ranks' engines and `ncclrun perf` need, as an installation has it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { installationRoot } from '../local.ts';
import { BUNDLED_NODE, IDENTITY_FILE } from './identity.ts';

export interface BundleFile {
  /** Where it lies here. */
  readonly source: string;
  /** Its path in the bundle. */
  readonly path: string;
  readonly executable: boolean;
}

const needed = [
  'package.json',
  'LICENSE',
  'bin/ncclrun',
  'bin/ncclrun-agent',
  'build/ncclrun-guardian',
  'build/ncclrun-dial',
  'build/ncclrun-perf',
  'build/libnccl.so.2',
  'build/ncclrun.node',
  'dist/bundle/agent.cjs',
  'dist/bundle/agent.bundle.cjs',
  'dist/bundle/main.cjs',
  'dist/bundle/main.bundle.cjs',
  'dist/bundle/ssh2.cjs',
  'dist/bundle/ssh2.bundle.cjs',
  'dist/bundle/yargs.cjs',
  'dist/bundle/yargs.bundle.cjs',
];
/** Faster where they are there. */
const wished = ['dist/bundle/agent.code', 'dist/bundle/main.code', 'dist/bundle/ssh2.code'];

/** In the order in which they are unpacked: the identity, last, tells that all the others are there. */
export function bundleFiles(): BundleFile[] {
  const names = [...needed, ...wished.filter((path) => existsSync(join(installationRoot, path))), IDENTITY_FILE];
  const ours = names.map((path) => ({
    source: join(installationRoot, path),
    path,
    executable: /^bin\/|^build\/ncclrun-/.test(path),
  }));
  return [{ source: process.execPath, path: BUNDLED_NODE, executable: true }, ...ours];
}
