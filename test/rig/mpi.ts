/** MPI programs of the tests, built with MPICH or Open MPI, whichever of them mpicc is. */
import { execFile } from 'node:child_process';
import { basename, join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from './capability.ts';
import { repository } from './cluster.ts';

const execFileAsync = promisify(execFile);

/** null: it is there. */
export function mpichUnavailable(): string | null {
  return findProgram('mpicc.mpich') === null ? 'needs mpicc.mpich (libmpich-dev)' : null;
}

export function openMpiUnavailable(): string | null {
  return findProgram('mpicc.openmpi') === null ? 'needs mpicc.openmpi (libopenmpi-dev)' : null;
}

/** `source` (relative to the repository) → a program in `directory`, whose path it resolves with. */
export async function compileMpi(
  source: string,
  directory: string,
  library: 'mpich' | 'openmpi' = 'mpich',
): Promise<string> {
  const output = join(directory, `${basename(source, '.c')}-${library}`);
  const words = ['-O2', '-Wall', '-Wextra', '-o', output, join(repository, source)];
  await execFileAsync(`mpicc.${library}`, words);
  return output;
}

/** The same for a program of MPICH that uses nccl.h, too. */
export async function compileMpiWithEngine(source: string, directory: string): Promise<string> {
  const build = join(repository, 'build');
  const output = join(directory, basename(source, '.c'));
  const include = `-I${join(repository, 'native/include')}`;
  const words = ['-O2', '-Wall', '-Wextra', include, '-o', output, join(repository, source)];
  await execFileAsync('mpicc.mpich', [...words, join(build, 'libnccl.so.2'), `-Wl,-rpath,${build}`]);
  return output;
}

/** What mpi-nccl prints, sorted. `rankHosts`: host index by rank. */
export function ncclLines(rankHosts: readonly number[]): string[] {
  return rankHosts.map((host, rank) => `rank ${rank} of ${rankHosts.length} ${placeOf(rankHosts, host, rank)} wrong 0`);
}

/** What mpi-tour prints, sorted. `rankHosts`: host index by rank. */
export function tourLines(rankHosts: readonly number[]): string[] {
  const size = rankHosts.length;
  const sum = (size * (size - 1)) / 2;
  return rankHosts.map((host, rank) => {
    const place = placeOf(rankHosts, host, rank);
    return `rank ${rank} of ${size} sum ${sum} broadcast 42 ${place} split ${Math.floor(rank / 2)}`;
  });
}

function placeOf(rankHosts: readonly number[], host: number, rank: number): string {
  const together = rankHosts.filter((one) => one === host).length;
  return `local ${rankHosts.slice(0, rank).filter((one) => one === host).length} of ${together}`;
}
