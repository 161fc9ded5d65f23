/** Compiles small C programs for tests, against our library where they need it. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
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

/** A stand-in for the NCCL that a program comes with; the path of its libnccl.so.2 in `directory`. */
export async function compileOtherNccl(directory: string): Promise<string> {
  const output = join(directory, 'libnccl.so.2');
  const source = join(repository, 'test/rig/programs/other-nccl.c');
  const include = `-I${join(repository, 'native/include')}`;
  const library = ['-shared', '-fPIC', '-Wl,-soname,libnccl.so.2'];
  await execFileAsync('cc', ['-O2', '-Wall', '-Wextra', '-Werror', include, ...library, '-o', output, source]);
  return output;
}

/** A program that finds `library` by its RPATH, which is stronger than LD_LIBRARY_PATH, as PyTorch's libraries find theirs. */
export async function compileWithLibrary(source: string, library: string, directory: string): Promise<string> {
  const output = join(directory, basename(source, '.c'));
  const include = `-I${join(repository, 'native/include')}`;
  const options = ['-O2', '-Wall', '-Wextra', '-Werror', include, '-o', output, join(repository, source)];
  await execFileAsync('cc', [...options, library, `-Wl,--disable-new-dtags,-rpath,${dirname(library)}`]);
  return output;
}

/** A library of test/rig/programs that stands in for another one; its path in `directory`. */
export async function compileLibrary(
  directory: string,
  name: string,
  options: readonly string[] = [],
): Promise<string> {
  const output = join(directory, `${[name, ...options].join('')}.so`);
  const source = join(repository, 'test/rig/programs', `${name}.c`);
  const words = ['-O2', '-Wall', '-Wextra', '-Werror', '-shared', '-fPIC', ...options, '-o', output, source];
  await execFileAsync('cc', words);
  return output;
}
