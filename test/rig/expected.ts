/** Long texts that tests expect, in files of their own below test/unit/fixtures/expected. */
import { join } from 'node:path';
import { expect } from 'vitest';
import { repository } from './cluster.ts';

/** The text equals that of the file. After an intended change `vitest -u` writes the files anew; whoever does so reads the difference. */
export async function expectText(name: string, text: string): Promise<void> {
  await expect(text).toMatchFileSnapshot(join(repository, 'test/unit/fixtures/expected', name));
}
