/** What sockets and ssh2 report, as troubles with a cause and a remedy. */
import { makeTrouble } from '../shell/trouble.ts';
import type { TroubleError } from '../shell/trouble.ts';
import type { Offers } from './identities.ts';
import type { HopSettings } from './settings.ts';

/** How far the connection had come. */
export type Progress = 'connecting' | 'handshake' | 'authentication' | 'ready';

export function connectTrouble(settings: HopSettings, error: NodeJS.ErrnoException, progress: Progress): TroubleError {
  const at = `connect to ${settings.hostName} port ${settings.port}`;
  switch (errorCode(error)) {
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
    case 'EAI_FAIL':
    case 'EAI_NONAME':
    case 'EAI_NODATA':
      return makeTrouble(
        'unknown-host',
        `could not resolve hostname ${settings.hostName}`,
        'check the name in the hostfile or -H, or give it a HostName in ~/.ssh/config',
      );
    case 'ECONNREFUSED':
      return makeTrouble(
        'refused',
        `${at}: connection refused`,
        'no sshd listens there: start it, or give its port in the hostfile or ~/.ssh/config',
      );
    case 'EHOSTUNREACH':
    case 'ENETUNREACH':
    case 'EHOSTDOWN':
      return makeTrouble(
        'no-route',
        `${at}: no route to host`,
        'the host is down, or a router or firewall is in the way',
      );
    case 'ETIMEDOUT':
      return progress === 'connecting' ? timeoutTrouble(`${at}: timed out`) : silentTrouble(settings);
    default:
      return progress === 'handshake' || progress === 'authentication'
        ? droppedTrouble(settings, progress, error.message)
        : makeTrouble('other', `${at}: ${error.message}`, `try: ssh -v ${settings.name} true`);
  }
}

/** Several addresses were tried: the first one's news. */
function errorCode(error: NodeJS.ErrnoException): string | undefined {
  const [first] = error instanceof AggregateError ? error.errors : [];
  const found: unknown = first instanceof Error && 'code' in first ? first.code : error.code;
  return typeof found === 'string' ? found : undefined;
}

export function timeoutTrouble(detail: string): TroubleError {
  return makeTrouble('timeout', detail, 'the host is down, or a firewall swallows the packets');
}

export function silentTrouble({ hostName, port }: HopSettings): TroubleError {
  return timeoutTrouble(`${hostName} port ${port} is connected, but does not answer`);
}

/** The far side closed without a word. Before any key was asked for, it was busy (MaxStartups). */
export function droppedTrouble(settings: HopSettings, progress: Progress, why: string | null): TroubleError {
  const beside = why === null ? '' : `: ${why}`;
  if (progress === 'authentication')
    return makeTrouble(
      'authentication',
      `${settings.hostName} ended the connection instead of letting us in${beside}`,
      loginRemedy(settings),
    );
  const detail = `${settings.hostName} port ${settings.port} closed the connection at its start${beside}`;
  return makeTrouble('other', detail, 'its sshd may be busy (MaxStartups), or not let this address in', true);
}

export function authenticationTrouble(
  settings: HopSettings,
  methods: readonly string[],
  { offers, leftOut }: Offers,
  partial: boolean,
): TroubleError {
  const tried =
    offers.length === 0 ? 'there was no key to offer' : `offered ${offers.map(({ name }) => name).join(', ')}`;
  const lines = [
    `${settings.user}@${settings.hostName}: Permission denied (${methods.join(',')}): ${partial ? 'a key is not enough there' : tried}`,
    ...leftOut,
  ];
  return makeTrouble('authentication', lines.join('\n'), loginRemedy(settings));
}

function loginRemedy({ user, name }: HopSettings): string {
  const login = `${user}@${name}`;
  return `this must work without a password: ssh -o BatchMode=yes ${login} true (ssh-copy-id ${login}, or ssh-add)`;
}
