/** Describes why staging to a host failed. */
import type { AgentFailure } from '../../model/failure.ts';
import { StagingRefusal } from './protocol.ts';

/** `stderr`: of the remote tools. */
export function stagingFailure(host: string, refusal: number, stderr: string): AgentFailure {
  const base = { type: 'agent', host, phase: 'hello' } as const;
  const reason = errorLine(stderr);
  switch (refusal) {
    case StagingRefusal.machine:
      return {
        ...base,
        message: `ncclrun is not on ${host}, and ours does not run there: it is another machine (${reason}; here ${process.arch})`,
        remedy: `install ncclrun on ${host}, the same version as here and at the same path`,
      };
    case StagingRefusal.start:
      return {
        ...base,
        message: `ncclrun is not on ${host}, and ours does not run there: ${reason}`,
        remedy: `build ncclrun on ${host}, or on the oldest system of your hosts, and install it at the same path`,
      };
    case StagingRefusal.hash:
      return { ...base, message: `ncclrun came to ${host} damaged: ${reason}`, remedy: 'start the job again' };
    case StagingRefusal.untrusted:
      return {
        ...base,
        message: `others may write to every place for a copy of ncclrun on ${host}: ${reason}`,
        remedy: `let the directory belong to you or root, writable by nobody else (chown, chmod go-w), or install ncclrun on ${host} at the same path as here`,
      };
    default:
      return {
        ...base,
        message: `ncclrun could not be copied into the cache directory of ${host}: ${reason}`,
        remedy: `make room or give access there (usually ~/.cache/ncclrun), or install ncclrun on ${host} at the same path as here`,
      };
  }
}

/** The first line with an error of the system, else the last. */
function errorLine(stderr: string): string {
  const lines = stderr.split('\n').map((line) => line.trim());
  const reason = lines.find((line) => /no space left|quota|read-only|permission denied|not found|GLIBC/i.test(line));
  return reason ?? lines.findLast((line) => line !== '') ?? 'no reason given';
}
