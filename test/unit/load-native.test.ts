import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { load, NativeLoadError } from '../../worker/engine/load.ts';

const directory = mkdtempSync(join(tmpdir(), 'load-'));

/** The message of the error that loading from these paths ends with. */
function loadError(paths: readonly string[], open?: (path: string) => unknown): string {
  try {
    load(paths, open);
  } catch (error) {
    if (error instanceof NativeLoadError) return error.message;
    throw error;
  }
  throw new Error('it was loaded');
}

it('the message lists every path tried and the command that builds the addon', () => {
  const message = loadError(['/no/such/a.node', '/no/such/b.node']);
  expect(message.split('\n')).toEqual([
    "cannot load ncclrun's native addon; tried",
    '  /no/such/a.node: there is no such file',
    '  /no/such/b.node: there is no such file',
    `In a checkout npm run build makes it; else npm install --include=optional brings @ncclrun/linux-${process.arch}, which has it.`,
  ]);
});

it('the message says that a file is built for another machine', () => {
  const path = join(directory, 'text.node');
  writeFileSync(path, 'not a library, but long enough to have a header of sixty-four bytes or so');
  expect(loadError([path])).toMatch(/invalid ELF header[^]*It was built for another machine than this one/);
});

it('the message lists the functions that an addon of another version lacks', () => {
  const old = { version: () => '0.0.1', setChildSubreaper: () => undefined };
  const message = loadError([import.meta.filename], () => old);
  expect(message).toMatch(/it is another version's, without endAfter, .*commClose/);
});
