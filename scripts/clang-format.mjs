// clang-format over native/: checks, or writes with --write. Skipped with a reason where clang-format is not installed
// (it is no npm package); CI installs it and sets NCCLRUN_TEST_REQUIRE so that a skip fails.
import { execaSync } from 'execa';
import { hasNotStarted, need } from './tool.mjs';

const patterns = ['native/*.cc', 'native/*.h', 'native/*.cu', 'native/*.cuh', '*.c'];
const files = need('git', ['ls-files', '--', ...patterns])
  .split('\n')
  .filter((name) => name !== '');
const write = process.argv.includes('--write');
const result = execaSync('clang-format', write ? ['-i', ...files] : ['--dry-run', '--Werror', ...files], {
  stdio: 'inherit',
  reject: false,
});
if (hasNotStarted(result)) {
  console.error(`format check of native code skipped: clang-format: ${result.originalMessage}`);
  process.exitCode = process.env.NCCLRUN_TEST_REQUIRE ? 1 : 0;
} else {
  process.exitCode = result.exitCode ?? 1;
}
