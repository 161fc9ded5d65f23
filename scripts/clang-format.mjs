// clang-format over native/: checks, or writes with --write. Skipped with a reason where clang-format is not installed
// (it is no npm package); CI installs it and sets NCCLRUN_TEST_REQUIRE so that a skip fails.
import { spawnSync } from 'node:child_process';

const files = spawnSync('git', ['ls-files', '--', 'native/*.cc', 'native/*.h', 'native/*.cu', 'native/*.cuh', '*.c'], {
  encoding: 'utf8',
})
  .stdout.split('\n')
  .filter((name) => name !== '');
const write = process.argv.includes('--write');
const result = spawnSync('clang-format', write ? ['-i', ...files] : ['--dry-run', '--Werror', ...files], {
  stdio: 'inherit',
});
if (result.error !== undefined) {
  console.error(`format check of native code skipped: clang-format: ${result.error.message}`);
  process.exitCode = process.env.NCCLRUN_TEST_REQUIRE ? 1 : 0;
} else {
  process.exitCode = result.status ?? 1;
}
