/** The build of the C++ tests, in a directory of its own. */
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { repository } from './cluster.ts';

export const nativeTests = join(repository, 'build-test');

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
export function buildNativeTests(target: string | null = null): void {
  const configured = tool('cmake', '-S', 'native', '-B', nativeTests, '-DNCCLRUN_TESTS=ON', '--log-level=WARNING');
  if (configured.failed !== null) throw new Error(configured.failed);
  const only = target === null ? [] : ['--target', target];
  const built = tool('cmake', '--build', nativeTests, '--parallel', '2', ...only);
  if (built.failed !== null) throw new Error(built.failed);
}
