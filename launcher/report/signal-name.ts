/** Signals by name and in words. */
const meanings: Partial<Record<NodeJS.Signals, string>> = {
  SIGHUP: 'terminal closed',
  SIGINT: 'interrupted',
  SIGQUIT: 'quit',
  SIGILL: 'illegal instruction',
  SIGTRAP: 'trap',
  SIGABRT: 'aborted',
  SIGBUS: 'bus error',
  SIGFPE: 'arithmetic error',
  SIGKILL: 'killed',
  SIGSEGV: 'segmentation fault',
  SIGPIPE: 'nobody reads its output',
  SIGALRM: 'alarm',
  SIGTERM: 'terminated',
  SIGXCPU: 'CPU time limit',
  SIGXFSZ: 'file size limit',
  SIGSYS: 'bad system call',
};

/** `SIGSEGV (segmentation fault)` */
export function signalWithMeaning(signal: NodeJS.Signals): string {
  const meaning = meanings[signal];
  return meaning === undefined ? signal : `${signal} (${meaning})`;
}
