/** Builds the C++ tests and runs them, several at a time; each is a test of its own. */
import { availableParallelism } from 'node:os';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { buildNativeTests, nativeTests, tool } from '../rig/native-tests.ts';

const listSchema = v.object({ tests: v.array(v.object({ name: v.string() })) });

function builtTests(): string[] {
  buildNativeTests();
  const listing = tool('ctest', '--test-dir', nativeTests, '--show-only=json-v1');
  return v.parse(listSchema, JSON.parse(listing.stdout)).tests.map((test) => test.name);
}

/** What each test has written, from the line that says whether it passed to the next such line. */
function outcomes(): ReadonlyMap<string, string> {
  const parallel = String(availableParallelism() + 1); // some wait most of the time
  const { stdout } = tool('ctest', '--test-dir', nativeTests, '--output-on-failure', '--parallel', parallel);
  const parts = stdout.split(/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: /mu).slice(1);
  return new Map(parts.map((part) => [/^\S+/u.exec(part)?.[0] ?? '', part]));
}

describe('native tests', () => {
  let all: ReadonlyMap<string, string> | null = null;
  it.each(builtTests())('the native test %s passes', (name) => {
    all ??= outcomes();
    expect(all.get(name)).toMatch(/^\S+ \.+ +Passed/u);
  });
});
