/** The C++ tests, built beside what they test. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { repository } from './cluster.ts';

const build = join(repository, 'build');
export const nativeTests = join(build, 'test');

/** Runs a tool in the repository; `failed` is its output where it fails. */
export function tool(file: string, ...argv: string[]): { readonly failed: string | null; readonly stdout: string } {
  const done = spawnSync(file, argv, { cwd: repository, encoding: 'utf8', maxBuffer: 1 << 28 });
  const text = `${done.stdout}${done.stderr}${done.error?.message ?? ''}`;
  return {
    failed: done.status === 0 ? null : `${file} ${argv.join(' ')}:\n${text.slice(-10_000)}`,
    stdout: done.stdout,
  };
}

/** Builds all tests, or one target; throws with the compiler's words. */
export function buildNativeTests(target = 'native_tests', directory = build): void {
  const built = tool('cmake', '--build', directory, '--parallel', '2', '--target', target);
  if (built.failed !== null) throw new Error(built.failed);
}

/** Builds a test with AddressSanitizer and UBSan, as .ci/full does; returns its path. */
export function buildSanitizedTest(name: string): string {
  const directory = join(repository, 'build-address');
  const prepared = tool('cmake', '-S', 'native', '-B', directory, '-DNCCLRUN_SANITIZE=address,undefined');
  if (prepared.failed !== null) throw new Error(prepared.failed);
  buildNativeTests(name, directory);
  return join(directory, 'test', name);
}
