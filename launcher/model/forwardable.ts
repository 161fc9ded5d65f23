/**
 * The signals that ncclrun can pass on to the ranks. Not among them: those that end the job (INT, TERM, HUP), those that nobody can
 * catch (KILL, STOP), and those that speak of one's own process (CHLD, PIPE, SEGV …).
 */
export const forwardable = [
  'SIGUSR1',
  'SIGUSR2',
  'SIGTSTP',
  'SIGCONT',
  'SIGQUIT',
  'SIGABRT',
  'SIGALRM',
  'SIGVTALRM',
  'SIGWINCH',
  'SIGURG',
  'SIGIO',
  'SIGPWR',
  'SIGXCPU',
] as const satisfies readonly NodeJS.Signals[];

export type Forwardable = (typeof forwardable)[number];
