/** Converts the guardian's report of a failed start to a failure. */
import { existsSync } from 'node:fs';
import { resolve } from 'node:path';
import { getSystemErrorMap } from 'node:util';
import { SpawnStep } from '../../control/messages/guardian.ts';
import { systemPath } from '../../control/system-text.ts';
import type { SpawnFailed } from '../../control/messages/payload.ts';
import type { SpawnFailure } from '../model/failure.ts';

export function spawnFailure(
  origin: { host: string; rank: number; program: string },
  workingDirectory: string,
  failed: SpawnFailed,
): SpawnFailure {
  const errno = getSystemErrorMap().get(-failed.errno)?.[0] ?? `errno ${failed.errno}`;
  const cause = causeOf(failed.step, errno);
  return { type: 'spawn', ...origin, cause, errno, remedy: remedyOf(cause, errno, origin, workingDirectory) };
}

function causeOf(step: SpawnStep, errno: string): SpawnFailure['cause'] {
  if (step === SpawnStep.directory) return 'working-directory';
  if (step !== SpawnStep.exec) return 'system';
  if (errno === 'ENOENT' || errno === 'ENOTDIR') return 'not-found';
  return errno in refused ? 'not-executable' : 'system';
}

/** What the kernel refuses about the program itself, for which shells have status 126, and what to do then. */
const refused: Readonly<Record<string, (program: string, host: string) => string>> = {
  EACCES: (program) =>
    `it must be a file with execute permission, in directories that you may enter (namei -l ${program} shows them): chmod +x ${program}, or start it with its interpreter`,
  EISDIR: (program) =>
    `it must be a file with execute permission: chmod +x ${program}, or start it with its interpreter`,
  ENOEXEC: (program, host) =>
    `build it for the processor of ${host}, if it is a program: file ${program} says for which it is`,
  E2BIG: (_, host) =>
    `its arguments and variables must be less than 128 KiB each and less than a quarter of the stack's limit in all: shorten them, hand them over in a file, or raise ulimit -s on ${host}`,
  ETXTBSY: (program, host) =>
    `somebody is writing ${program} on ${host} (fuser -v names them): start it when they are done`,
  ELOOP: (program) => `its symbolic links lead in a circle: readlink -f ${program}`,
  ENAMETOOLONG: () => 'give it a shorter path',
  ELIBBAD: (program) => `the interpreter that ${program} names is damaged or for another processor`,
  EPERM: (_, host) => `a sandbox or security module on ${host} refuses this`,
};

const systemRemedies: Readonly<Record<string, (host: string) => string>> = {
  EMFILE: (host) => `raise the limit of open files on ${host} (ulimit -n): each rank takes three there`,
  ENFILE: (host) => `${host} has as many open files as it allows: see sysctl fs.file-nr there`,
  EAGAIN: (host) =>
    `raise the limit of processes and threads on ${host} (ulimit -u), or pids.max of the control group, or start fewer ranks`,
  ENOMEM: (host) => `give the job more memory on ${host}, or start fewer ranks there`,
  EPERM: (host) => `a sandbox or security module on ${host} refuses this`,
};

function remedyOf(
  cause: SpawnFailure['cause'],
  errno: string,
  { host, program }: { host: string; program: string },
  workingDirectory: string,
): string | null {
  switch (cause) {
    case 'not-found':
      if (program.includes('/'))
        return `check the path on ${host}; if the file is there, the interpreter that its first line names is not`;
      return existsSync(systemPath(resolve(workingDirectory, program)))
        ? `it is no command, but a file in ${workingDirectory}: write ./${program}`
        : `check the name, the PATH on ${host}, or give the full path`;
    case 'not-executable':
      return refused[errno]?.(program, host) ?? null;
    case 'working-directory':
      return `make ${workingDirectory} on ${host}, or name another directory with --wdir`;
    case 'system':
      return systemRemedies[errno]?.(host) ?? null;
    default:
      return cause satisfies never;
  }
}
