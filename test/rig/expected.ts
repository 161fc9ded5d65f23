/** Long texts that tests expect, in files of their own. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect } from 'vitest';
import { repository } from './cluster.ts';

/**
 * The text equals that of test/unit/fixtures/expected/NAME. After an intended change NCCLRUN_TEST_EXPECTED=write writes the files anew;
 * whoever does so reads the difference.
 */
export function expectText(name: string, text: string): void {
  const path = join(repository, 'test/unit/fixtures/expected', name);
  if (process.env['NCCLRUN_TEST_EXPECTED'] === 'write') {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  }
  expect(text).toBe(readFileSync(path, 'utf8'));
}
