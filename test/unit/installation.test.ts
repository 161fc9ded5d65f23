/** Where the GPU kernels of an installation lie: in its own build, or in the npm package beside it. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { kernelsDirectory, lacksPackagedKernels } from '../../worker/agent/installation.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-installation-'));
afterAll(() => rmSync(root, { recursive: true }));

/** `scope`: the directory in which the installation lies. */
function installation(scope: string, { built, packaged }: { built: boolean; packaged: boolean }) {
  const above = mkdtempSync(join(root, 'one-'));
  const own = join(above, scope, 'linux-x64');
  for (const [isThere, directory] of [
    [built, join(own, 'build', 'kernels')],
    [packaged, join(above, scope, 'kernels')],
  ] as const) {
    mkdirSync(directory, { recursive: true });
    if (isThere) writeFileSync(join(directory, 'architectures'), '');
  }
  return { directory: kernelsDirectory(own).slice(join(above, scope).length + 1), lacks: lacksPackagedKernels(own) };
}

const ofBuild = 'linux-x64/build/kernels';

it.each<[string, boolean, boolean, string, boolean]>([
  ['@ncclrun', false, false, ofBuild, true],
  ['@ncclrun', false, true, 'kernels', false],
  ['@ncclrun', true, false, ofBuild, false],
  ['@ncclrun', true, true, ofBuild, false],
  ['src', false, false, ofBuild, false],
  ['src', false, true, ofBuild, false],
  ['src', true, true, ofBuild, false],
])(
  'an installation in %s with kernels of its own: %s, beside it: %s, has them in %s and lacks the package: %s',
  (scope, built, packaged, directory, lacks) => {
    expect(installation(scope, { built, packaged })).toEqual({ directory, lacks });
  },
);
