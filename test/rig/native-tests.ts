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
export function buildNativeTests(target = 'native_tests'): void {
  const built = tool('cmake', '--build', build, '--parallel', '2', '--target', target);
  if (built.failed !== null) throw new Error(built.failed);
}
