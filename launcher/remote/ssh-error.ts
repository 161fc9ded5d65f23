/** Converts ssh's stderr to a failure with a remedy. Its exit status is 255 for every error. */
import type { HostUnreachableFailure } from '../model/failure.ts';
import type { HostSlots } from '../model/types.ts';
import { loginOf } from './shell/shell.ts';
import type { RemoteExit } from './shell/shell.ts';

type Cause = HostUnreachableFailure['cause'];

interface KnownError {
  readonly pattern: RegExp;
  readonly cause: Cause;
  remedy(login: string): string;
}

/** The first match counts; the order matters if ssh reports several errors. */
const knownErrors: readonly KnownError[] = [
  {
    pattern: /could not resolve hostname|name or service not known|temporary failure in name resolution/i,
    cause: 'unknown-host',
    remedy: () => 'check the name in the hostfile or -H, or give it a HostName in ~/.ssh/config',
  },
  {
    pattern:
      /host key verification failed|remote host identification has changed|no matching host key|host key is known/i,
    cause: 'host-key',
    remedy: (login) =>
      `connect once by hand and compare the key: ssh ${login}; if the key really changed, ssh-keygen -R removes the old one`,
  },
  {
    pattern: /permission denied|too many authentication failures|no supported authentication methods|no such identity/i,
    cause: 'authentication',
    remedy: (login) =>
      `this must work without a password: ssh -o BatchMode=yes ${login} true (ssh-copy-id ${login}, or ssh-add)`,
  },
  {
    pattern: /no route to host|network is unreachable/i,
    cause: 'no-route',
    remedy: () => 'the host is down, or a router or firewall is in the way',
  },
  {
    pattern: /connection refused/i,
    cause: 'refused',
    remedy: () => 'no sshd listens there: start it, or give its port in the hostfile or ~/.ssh/config',
  },
  {
    pattern: /timed out|timeout/i,
    cause: 'timeout',
    remedy: () => 'the host is down, or a firewall swallows the packets',
  },
];

/** An sshd with more unauthenticated connections than MaxStartups drops some, before or right after its banner. */
const droppedByServer = /connection closed by (remote host|\S+ port)|connection reset by|kex_exchange_identification/i;

export function isTransientSsh(stderr: string): boolean {
  return droppedByServer.test(stderr) && !knownErrors.some(({ pattern }) => pattern.test(stderr));
}

/** `trial`: what to type to see more. */
export function explainSsh(
  host: HostSlots,
  { stderr, status, problem }: RemoteExit,
  trial: string,
): HostUnreachableFailure {
  if (problem !== undefined) {
    const { cause, detail, remedy } = problem;
    return { type: 'host-unreachable', host: host.name, phase: 'connect', cause, detail, remedy };
  }
  const login = loginOf(host);
  const detail = lastLines(stderr);
  const base = { type: 'host-unreachable', host: host.name, phase: 'connect', detail } as const;
  const found = knownErrors.find(({ pattern }) => pattern.test(stderr));
  if (found !== undefined) return { ...base, cause: found.cause, remedy: found.remedy(login) };
  if (stderr.trim() !== '' && status !== null) return { ...base, cause: 'other', remedy: `try: ${trial}` };
  const program = trial.split(' ', 1)[0];
  const how =
    status === null ? detail || `${program} was killed` : `${program} ended with status ${status} and said nothing`;
  return { ...base, cause: 'shell', detail: how, remedy: `try: ${trial}` };
}

/** Lines to omit: the frames of @ around ssh's warnings, and its internal messages about our dialler's failure. */
const noise = /^@+$|^mm_receive_fd:|^proxy dialer did not pass back/;

const LINE_CHARACTERS = 400;

function lastLines(stderr: string): string {
  const lines = stderr.split(/\r?\n/).map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && !noise.test(line))
    .slice(-4)
    .map((line) => (line.length > LINE_CHARACTERS ? `${line.slice(0, LINE_CHARACTERS)}…` : line))
    .join('\n');
}
