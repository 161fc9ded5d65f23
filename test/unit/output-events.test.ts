import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { eventPage } from '../../scripts/event-table.ts';

test('docs/events.md matches the schema (npm run docs writes it)', () => {
  expect(readFileSync(join(import.meta.dirname, '../../docs/events.md'), 'utf8')).toBe(eventPage());
});
