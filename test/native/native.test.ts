/** Builds the C++ tests and runs each as a test of its own. */
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { buildNativeTests, nativeTests, tool } from '../rig/native-tests.ts';

const listSchema = v.object({ tests: v.array(v.object({ name: v.string() })) });

function builtTests(): string[] {
  buildNativeTests();
  const listing = tool('ctest', '--test-dir', nativeTests, '--show-only=json-v1');
  return v.parse(listSchema, JSON.parse(listing.stdout)).tests.map((test) => test.name);
}

describe('native tests', () => {
  it.each(builtTests())('the native test %s passes', (name) => {
    const exact = `^${name.replaceAll(/[^\w]/g, '\\$&')}$`;
    expect(tool('ctest', '--test-dir', nativeTests, '--output-on-failure', '-R', exact).failed).toBeNull();
  });
});
