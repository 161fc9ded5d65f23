/** The numbers by which the addon knows operations, on both sides of the boundary. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { OPERATION_KINDS } from '../../worker/engine/native.ts';

it('every operation has the same number in TypeScript and in the addon', () => {
  const source = readFileSync(new URL('../../native/binding/operation.cc', import.meta.url), 'utf8');
  const [, members = ''] = /enum class Kind : uint32_t \{([^}]*)\}/u.exec(source) ?? [];
  const kinds = [...members.matchAll(/\w+/gu)].map(([name]) => name);
  expect(kinds).toEqual([...OPERATION_KINDS, 'count']);
});
