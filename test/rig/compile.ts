/** Compiles small C programs for tests, against our library where they need it. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from './cluster.ts';

const execFileAsync = promisify(execFile);

/** `source` (relative to the repository) → a program in `directory`, whose path it resolves with. */
export async function compile(source: string, directory: string): Promise<string> {
  const output = join(directory, basename(source, '.c'));
  const include = `-I${join(repository, 'native/include')}`;
  await execFileAsync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', include, '-o', output, join(repository, source)]);
  return output;
}

/** The same for a program that uses nccl.h and ncclrun.h. */
export async function compileWithEngine(source: string, directory: string): Promise<string> {
  const build = join(repository, 'build');
  const library = ['libnccl.so.2', 'libnccl.so'].map((name) => join(build, name)).find((path) => existsSync(path));
  if (library === undefined) throw new Error(`no libnccl.so.2 in ${build}: npm run build`);
  const output = join(directory, basename(source, '.c'));
  const include = `-I${join(repository, 'native/include')}`;
  const options = ['-O2', '-Wall', '-Wextra', '-Werror', include, '-o', output, join(repository, source)];
  await execFileAsync('cc', [...options, library, `-Wl,-rpath,${build}`, '-pthread']);
  return output;
}
