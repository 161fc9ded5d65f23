/** Builds the C++ tests and runs each as a test of its own. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';

const build = join(repository, 'build-test');
const listSchema = v.object({ tests: v.array(v.object({ name: v.string() })) });

/** Runs a tool in the repository; its combined output where it fails. */
function tool(file: string, ...argv: string[]): { failed: string | null; stdout: string } {
  const done = spawnSync(file, argv, { cwd: repository, encoding: 'utf8', maxBuffer: 1 << 28 });
  const text = `${done.stdout}${done.stderr}${done.error?.message ?? ''}`;
  return {
    failed: done.status === 0 ? null : `${file} ${argv.join(' ')}:\n${text.slice(-10_000)}`,
    stdout: done.stdout,
  };
}

/** Names of the tests, after a build; throws with the compiler's words. */
function buildTests(): string[] {
  const configured = tool('cmake', '-S', 'native', '-B', build, '-DNCCLRUN_TESTS=ON', '--log-level=WARNING');
  const built = configured.failed === null ? tool('cmake', '--build', build, '--parallel', '2') : configured;
  if (built.failed !== null) throw new Error(built.failed);
  const listing = tool('ctest', '--test-dir', build, '--show-only=json-v1');
  return v.parse(listSchema, JSON.parse(listing.stdout)).tests.map((test) => test.name);
}

describe('native', () => {
  it.each(buildTests())('%s', (name) => {
    const exact = `^${name.replaceAll(/[^\w]/g, '\\$&')}$`;
    expect(tool('ctest', '--test-dir', build, '--output-on-failure', '-R', exact).failed).toBeNull();
  });
});
