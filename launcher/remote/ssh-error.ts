/** Converts ssh's stderr to a failure with a remedy. Its exit status is 255 for every error. */
import { statSync } from 'node:fs';
import type { HostUnreachableFailure } from '../model/failure.ts';
import type { HostSlots } from '../model/types.ts';
import { loginRemedy, manyKeysRemedy } from './shell/login-remedy.ts';
import { destinationOf, sshDestination } from './shell/shell.ts';
import type { RemoteExit } from './shell/shell.ts';

type Cause = HostUnreachableFailure['cause'];

interface KnownError {
  readonly pattern: RegExp;
  readonly cause: Cause;
  /** `match` is what `pattern` found. */
  remedy(host: HostSlots, match: RegExpExecArray): string;
}

/** How ssh and the like begin a line about a connection. Programs of a login that speak of another connection begin otherwise. */
const CONNECT = String.raw`^(?:[\w./-]+: )?(?:connect to (?:host|address) .*|channel \d+: open failed: connect failed|ssh_dispatch_run_fatal: .*)`;
const about = (what: string) => new RegExp(`${CONNECT}: (?:${what})`, 'im');

const algorithmSettings: Readonly<Record<string, string>> = {
  'key exchange method': 'KexAlgorithms',
  'host key type': 'HostKeyAlgorithms',
  cipher: 'Ciphers',
  mac: 'MACs',
};

/** The first match counts; the order matters if ssh reports several errors. */
const knownErrors: readonly KnownError[] = [
  {
    pattern: /no matching (key exchange method|host key type|cipher|MAC) found\. Their offer: ([^\s,]+)/i,
    cause: 'other',
    remedy: ({ name }, [, what = '', offer = '']) => {
      const setting = `${algorithmSettings[what.toLowerCase()] ?? 'Ciphers'} +${offer}`;
      return `the host is older or newer than this ssh; to accept what it offers, write in ~/.ssh/config: Host ${name}, ${setting}`;
    },
  },
  {
    pattern: /^(\S+): terminating, [0-9]+ bad configuration options/im,
    cause: 'other',
    remedy: (_host, [, file = '']) =>
      `mend ${file} there, or leave the option to newer versions of ssh with IgnoreUnknown`,
  },
  {
    pattern: /^bad owner or permissions on (\S+)/im,
    cause: 'other',
    remedy: (_host, [, file = '']) =>
      `it must belong to you or root, and nobody else may write to it: chmod go-w ${file}`,
  },
  {
    pattern: /open failed: administratively prohibited/i,
    cause: 'other',
    remedy: () =>
      'the jump host forwards nothing there: its sshd needs AllowTcpForwarding yes, and PermitOpen for the host',
  },
  {
    pattern: /: (?:command )?not found\r?$|: no such file or directory\r?$(?=[^]*^kex_exchange_identification)/im,
    cause: 'other',
    remedy: () => 'mend the ProxyCommand in ~/.ssh/config, or install the program that it starts',
  },
  {
    pattern: /^(?:[\w./-]+: )?could not resolve hostname/im,
    cause: 'unknown-host',
    remedy: () => 'check the name in the hostfile or -H, or give it a HostName in ~/.ssh/config',
  },
  {
    pattern: /^host key verification failed|remote host identification has changed|^no \S+ host key is known/im,
    cause: 'host-key',
    remedy: (host) =>
      `connect once by hand and compare the key: ssh ${sshDestination(host)}; if the key really changed, ssh-keygen -R ${keyName(host)} removes the old one`,
  },
  {
    pattern: /too many authentication failures/i,
    cause: 'authentication',
    remedy: ({ name }) => manyKeysRemedy(name),
  },
  {
    pattern: /^(?:\S+: )?permission denied(?: \(|, )|no supported authentication methods/im,
    cause: 'authentication',
    remedy: (host, { input }) => {
      const [, user = null, methods = ''] = /(?:^|\s)([^\s@]+)@\S+: permission denied \(([^)]*)\)/im.exec(input) ?? [];
      return loginRemedy(sshDestination(host), methods.split(','), user);
    },
  },
  {
    pattern: about('no route to host|network is unreachable'),
    cause: 'no-route',
    remedy: () => 'the host is down, or a router or firewall is in the way',
  },
  {
    pattern: about('connection refused'),
    cause: 'refused',
    remedy: () => 'no sshd listens there: start it, or give its port in the hostfile or ~/.ssh/config',
  },
  {
    pattern: new RegExp(
      `${about('(?:connection|operation) timed out').source}|^connection timed out during|^connection to .* timed out|^timeout, server .* not responding`,
      'im',
    ),
    cause: 'timeout',
    remedy: () => 'the host is down, or a firewall swallows the packets',
  },
];

/** As known_hosts and ssh-keygen have it. */
function keyName(host: HostSlots): string {
  const { name, port } = destinationOf(host);
  return port === null || port === 22 ? name : `'[${name}]:${port}'`;
}

/** An sshd with more unauthenticated connections than MaxStartups drops some, before or right after its banner. */
const droppedByServer =
  /^connection (?:closed|reset) by (?:remote host|\S+ port)|^connection reset by|^kex_exchange_identification/im;

export function isTransientSsh(stderr: string): boolean {
  return droppedByServer.test(stderr) && !knownErrors.some(({ pattern }) => pattern.test(stderr));
}

/** The host's login, or what should lead there, ended before our command ran: no words of it are ssh's. `trial` as below. */
export function explainLogin(
  { name }: HostSlots,
  { status, stderr }: RemoteExit,
  trial: string,
): HostUnreachableFailure {
  const words = lastLines(stderr);
  const how = `the login ended with status ${status} before it ran our command`;
  const detail = words === '' ? how : `${how}:\n${words}`;
  const remedy = /^\S*sh: .*restricted$/im.test(words)
    ? `the login shell there is restricted; ncclrun needs one that is not: chsh -s /bin/bash`
    : `this must end with status 0: ${trial}; a login script or shell there, or the program here, says why it does not`;
  return { type: 'host-unreachable', host: name, phase: 'connect', cause: 'shell', detail, remedy };
}

/** `trial`: what to type to see more. */
export function explainSsh(host: HostSlots, exit: RemoteExit, trial: string): HostUnreachableFailure {
  const failure = explained(host, exit, trial);
  if (failure.cause !== 'unknown-host' || !isFile(host.name)) return failure;
  return { ...failure, remedy: `${host.name} is a file here: name it with --hostfile ${host.name}, or check the name` };
}

/** DeepSpeed's -H names a hostfile. */
function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true;
}

function explained(host: HostSlots, { stderr, status, problem }: RemoteExit, trial: string): HostUnreachableFailure {
  if (problem !== undefined) {
    const { cause, detail, remedy } = problem;
    return { type: 'host-unreachable', host: host.name, phase: 'connect', cause, detail, remedy };
  }
  const detail = lastLines(stderr);
  const base = { type: 'host-unreachable', host: host.name, phase: 'connect', detail } as const;
  for (const known of knownErrors) {
    const match = known.pattern.exec(stderr);
    if (match !== null) return { ...base, cause: known.cause, remedy: known.remedy(host, match) };
  }
  if (stderr.trim() !== '' && status !== null) return { ...base, cause: 'other', remedy: `try: ${trial}` };
  const program = trial.split(' ', 1)[0];
  const how =
    status === null ? detail || `${program} was killed` : `${program} ended with status ${status} and said nothing`;
  return { ...base, cause: 'shell', detail: how, remedy: `try: ${trial}` };
}

/** Lines to omit: the frames of @ around ssh's warnings, what it says of success, and its internal messages about our dialler's failure. */
const noise = /^@+$|^mm_receive_fd:|^proxy dialer did not pass back|^Warning: Permanently added|^\*\* /;

const LINE_CHARACTERS = 400;

function lastLines(stderr: string): string {
  const lines = stderr.split(/\r?\n/).map((line) => line.trim());
  return lines
    .filter((line) => line !== '' && !noise.test(line))
    .slice(-4)
    .map((line) => (line.length > LINE_CHARACTERS ? `${line.slice(0, LINE_CHARACTERS)}…` : line))
    .join('\n');
}
