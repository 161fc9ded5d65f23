/** What sockets and ssh2 report, as errors with a cause and a remedy. */
import { makeConnectionError } from '../shell/connection-error.ts';
import type { ConnectionError } from '../shell/connection-error.ts';
import { loginRemedy, manyKeysRemedy } from '../shell/login-remedy.ts';
import type { Offers } from './identities.ts';
import { sshWords, type HopSettings } from './settings.ts';

/** How far the connection had come. */
export type Progress = 'connecting' | 'handshake' | 'authentication' | 'ready';

export function connectProblem(
  settings: HopSettings,
  error: NodeJS.ErrnoException,
  progress: Progress,
): ConnectionError {
  const at = `connect to ${settings.hostName} port ${settings.port}`;
  switch (error.code) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
    case 'EAI_NONAME':
    case 'EAI_NODATA':
      return makeConnectionError(
        'unknown-host',
        `could not resolve hostname ${settings.hostName}`,
        'check the name in the hostfile or -H, or give it a HostName in ~/.ssh/config',
      );
    case 'ECONNREFUSED':
      return makeConnectionError(
        'refused',
        `${at}: connection refused`,
        'no sshd listens there: start it, or give its port in the hostfile or ~/.ssh/config',
      );
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
      return makeConnectionError(
        'no-route',
        `${at}: no route to host`,
        'the host is down, or a router or firewall is in the way',
      );
    case 'ETIMEDOUT':
      return progress === 'connecting' ? timeoutProblem(`${at}: timed out`) : silentProblem(settings);
    default:
      return progress === 'handshake' || progress === 'authentication'
        ? droppedProblem(settings, progress, error.message)
        : makeConnectionError('other', `${at}: ${error.message}`, `try: ssh -v ${sshWords(settings)} true`);
  }
}

export function timeoutProblem(detail: string): ConnectionError {
  return makeConnectionError('timeout', detail, 'the host is down, or a firewall swallows the packets');
}

export function silentProblem({ hostName, port }: HopSettings): ConnectionError {
  return timeoutProblem(`${hostName} port ${port} is connected, but does not answer`);
}

/** The far side closed without a word. Before any key was asked for, it was busy (MaxStartups). */
export function droppedProblem(settings: HopSettings, progress: Progress, why: string | null): ConnectionError {
  const beside = why === null ? '' : `: ${why}`;
  if (progress === 'authentication')
    return makeConnectionError(
      'authentication',
      `${settings.hostName} ended the connection instead of letting us in${beside}`,
      why !== null && /too many authentication failures/i.test(why)
        ? manyKeysRemedy(settings.name)
        : loginRemedy(sshWords(settings), [], settings.user),
    );
  const detail = `${settings.hostName} port ${settings.port} closed the connection at its start${beside}`;
  return makeConnectionError('other', detail, 'its sshd may be busy (MaxStartups), or not let this address in', true);
}

export function authenticationProblem(
  settings: HopSettings,
  methods: readonly string[],
  { offers, leftOut }: Offers,
  partial: boolean,
): ConnectionError {
  const tried =
    offers.length === 0 ? 'there was no key to offer' : `offered ${offers.map(({ name }) => name).join(', ')}`;
  const lines = [
    `${settings.user}@${settings.hostName}: Permission denied (${methods.join(',')}): ${partial ? 'a key is not enough there' : tried}`,
    ...leftOut,
  ];
  return makeConnectionError(
    'authentication',
    lines.join('\n'),
    loginRemedy(sshWords(settings), methods, settings.user),
  );
}
