/** When an agent takes tables of measured times: what the user wants, and whether there are any. */
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { Tables } from '../../control/planner/measured/tables.ts';
import { findTables } from '../../worker/agent/tuning.ts';

const empty = mkdtempSync(join(tmpdir(), 'ncclrun-no-tables-'));
const full = mkdtempSync(join(tmpdir(), 'ncclrun-tables-'));
mkdirSync(join(full, 'ncclrun/tuning'), { recursive: true });
afterAll(() => {
  for (const directory of [empty, full]) rmSync(directory, { recursive: true });
});

const listener = { used: () => expect.unreachable(), problem: () => expect.unreachable() };
const found = (XDG_CACHE_HOME: string, NCCLRUN_TUNE?: string) =>
  findTables({ XDG_CACHE_HOME, ...(NCCLRUN_TUNE === undefined ? {} : { NCCLRUN_TUNE }) }, listener);

it.each([
  ['takes tables that are there', full, undefined, true],
  ['takes none where none are', empty, undefined, false],
  ['takes none if the user wants none', full, '0', false],
  ['makes plans for measuring where no tables are', empty, 'measure', true],
])('the agent %s', async (_title, directory, wish, expected) => {
  const tables = found(directory, wish)();
  expect(tables !== null).toBe(expected);
  if (tables !== null) expect(await tables).toBeInstanceOf(Tables);
});

it('the agent looks for tables once', async () => {
  const tables = found(full);
  expect(tables()).toBe(tables());
  await tables();
});
