/** A call that the operating system refused on this machine: a limit, a sandbox, an old kernel, a full or read-only file system. */
import { messageOf } from '../../control/message-of.ts';
import type { Failure, SystemFailure } from '../model/failure.ts';
import { FailureError } from '../model/failure-error.ts';

const remedies: Readonly<Record<string, string>> = {
  EMFILE: 'raise the limit of open files: ulimit -n 1024',
  ENFILE: 'the whole machine has as many open files as it allows: see sysctl fs.file-nr, raise fs.file-max',
  EAGAIN: 'raise the limit of processes and threads (ulimit -u), or pids.max of the control group',
  ENOMEM: 'give the job more memory (the machine’s, ulimit -v, or its control group’s)',
  ENOSPC: 'make room there, or name another directory in TMPDIR or XDG_RUNTIME_DIR',
  EDQUOT: 'make room in your quota, or name another directory in TMPDIR or XDG_RUNTIME_DIR',
  EROFS: 'name a directory that can be written to in TMPDIR or XDG_RUNTIME_DIR',
  EPERM: 'a sandbox (seccomp, a security module) may refuse this call: allow it, or run ncclrun outside of the sandbox',
  ENOSYS: 'the kernel, or a sandbox (seccomp), does not have this call: allow it, or use Linux 5.4 or newer',
};

/** What was thrown, as a failure for people: the one that it carries, a refusal of the system's, else a defect of ours. */
export function failureOf(error: unknown): Failure {
  if (error instanceof FailureError) return error.failure;
  return systemFailure(error) ?? { type: 'internal', message: messageOf(error) };
}

/** null: it is no refusal of the system's that somebody can do something about. */
function systemFailure(error: unknown): SystemFailure | null {
  if (!(error instanceof Error) || !('code' in error) || typeof error.code !== 'string') return null;
  const remedy = remedies[error.code];
  if (remedy === undefined) return null;
  const message = messageOf(error);
  if (message.includes('ulimit')) return { type: 'system', message, remedy: null };
  return { type: 'system', message: `${message}${limitOf(error.code)}`, remedy };
}

/** Node's report has the limits without opening a file. */
function limitOf(code: string): string {
  const what = { EMFILE: 'open_files', EAGAIN: 'max_user_processes' }[code];
  if (what === undefined) return '';
  const report: unknown = process.report.getReport();
  const soft = property(property(property(report, 'userLimits'), what), 'soft');
  if (typeof soft !== 'number' && typeof soft !== 'string') return '';
  return code === 'EMFILE'
    ? `: this process may open ${soft} files`
    : `: this user may have ${soft} processes and threads`;
}

function property(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Reflect.get(value, name) : undefined;
}
