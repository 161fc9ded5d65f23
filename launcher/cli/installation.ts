/** Where this installation lies. The bundle (dist/bundle) and this file (launcher/cli) are both two directories deep. */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');

/** The native program that `ncclrun perf` starts as its ranks. */
export const perfProgram = join(root, 'build', 'ncclrun-perf');

/** The version in package.json. */
export function installedVersion(): string {
  const content: unknown = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));
  const version = typeof content === 'object' && content !== null && 'version' in content ? content.version : null;
  return typeof version === 'string' ? version : 'unknown';
}
