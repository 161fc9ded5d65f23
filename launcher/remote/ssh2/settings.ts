/** What our own ssh needs to know of a host, from the user's ssh configuration; OpenSSH's defaults where there is no ssh to ask. */
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { Answer, Destination } from '../ssh-config/configuration.ts';
import { expandPath } from '../ssh-config/tokens.ts';
import type { TokenFacts } from '../ssh-config/tokens.ts';
import { quotedIfNeeded } from '../shell/shell.ts';
import { sentEnvironment } from './sent-environment.ts';

export interface HopSettings {
  /** As the user names it, and what that is really called. */
  readonly name: string;
  readonly hostName: string;
  readonly port: number;
  readonly user: string;
  /** The name and port by which its key is kept. */
  readonly keyName: string;
  readonly keyPort: number;
  readonly identityFiles: readonly string[];
  /** Of the agent's keys only those that an identity file names. */
  readonly identitiesOnly: boolean;
  /** The agent's socket. */
  readonly agent: string | null;
  readonly userKnownHosts: readonly string[];
  readonly globalKnownHosts: readonly string[];
  /** What becomes of keys that nobody knows: refused, added, or (`off`) taken even where another one was known. */
  readonly strict: 'refuse' | 'add' | 'off';
  readonly hashKnownHosts: boolean;
  readonly connectSeconds: number;
  /** 0: any. */
  readonly family: 0 | 4 | 6;
  readonly bindAddress: string | null;
  /** What the command's environment is to get. */
  readonly environment: Readonly<Record<string, string>>;
  readonly jumps: readonly Destination[];
  /** As the configuration lists them; null: not known, so ours. */
  readonly kex: readonly string[] | null;
  readonly ciphers: readonly string[] | null;
  readonly macs: readonly string[] | null;
  readonly hostKeys: readonly string[] | null;
}

const CONNECT_SECONDS = 10;
const DEFAULT_PORT = 22;
const defaultIdentities = ['id_rsa', 'id_ecdsa', 'id_ed25519'];

/** @throws nothing: a value that cannot be expanded is left out */
export function hopSettings(destination: Destination, { settings }: Answer): HopSettings {
  const one = (name: string) => given(settings.get(name)?.[0]);
  const list = (name: string, separator: RegExp) => one(name)?.split(separator).filter(Boolean) ?? null;
  const { name } = destination;
  const hostName = one('hostname') ?? name;
  const port = destination.port ?? Number(one('port') ?? DEFAULT_PORT);
  const user = destination.user ?? one('user') ?? userInfo().username;
  const alias = one('hostkeyalias');
  const facts = { name, hostName, port, user, keyName: alias ?? hostName };
  const paths = (values: readonly string[]) => values.flatMap((value) => expandPath(value, facts) ?? []);
  const family = { inet: 4, inet6: 6 } as const;
  const familyName = one('addressfamily');
  return {
    name,
    hostName,
    port,
    user,
    keyName: facts.keyName,
    keyPort: alias === null ? port : DEFAULT_PORT,
    identityFiles:
      settings.size === 0
        ? inSshFolder(defaultIdentities)
        : paths(settings.get('identityfile') ?? []).filter((file) => file !== 'none'),
    identitiesOnly: one('identitiesonly') === 'yes',
    agent: agentSocket(settings.get('identityagent')?.[0] ?? null, facts),
    userKnownHosts:
      settings.size === 0 ? inSshFolder(['known_hosts', 'known_hosts2']) : paths(list('userknownhostsfile', / /) ?? []),
    globalKnownHosts:
      settings.size === 0 ? ['/etc/ssh/ssh_known_hosts'] : paths(list('globalknownhostsfile', / /) ?? []),
    strict: strictness(one('stricthostkeychecking')),
    hashKnownHosts: one('hashknownhosts') === 'yes',
    connectSeconds: positive(one('connecttimeout')) ?? CONNECT_SECONDS,
    family: familyName === 'inet' || familyName === 'inet6' ? family[familyName] : 0,
    bindAddress: one('bindaddress'),
    environment: sentEnvironment(settings, process.env),
    jumps: list('proxyjump', /,/)?.map((text) => parseJump(text)) ?? [],
    kex: list('kexalgorithms', /,/),
    ciphers: list('ciphers', /,/),
    macs: list('macs', /,/),
    hostKeys: list('hostkeyalgorithms', /,/),
  };
}

/** Null for ssh's "none", which means that a setting is unset. */
function given(value: string | undefined): string | null {
  return value === undefined || value === 'none' || value === '' ? null : value;
}

function inSshFolder(names: readonly string[]): string[] {
  return names.map((name) => join(homedir(), '.ssh', name));
}

function positive(value: string | null): number | null {
  return value !== null && /^[1-9][0-9]*$/.test(value) ? Number(value) : null;
}

function agentSocket(value: string | null, facts: TokenFacts): string | null {
  const usual = process.env['SSH_AUTH_SOCK'] ?? null;
  if (value === null || value === 'SSH_AUTH_SOCK') return usual === '' ? null : usual;
  if (value === 'none') return null;
  if (value.startsWith('$') && !value.startsWith('${')) return process.env[value.slice(1)] ?? null;
  return expandPath(value, facts);
}

/** We cannot ask, so what ssh would ask about is refused, as in its batch mode. */
function strictness(value: string | null): HopSettings['strict'] {
  if (value === 'accept-new') return 'add';
  return value === 'no' || value === 'off' || value === 'false' ? 'off' : 'refuse';
}

/** [user@]host[:port], as ssh -G writes a ProxyJump's parts; an IPv6 address stands in brackets. */
export function parseJump(text: string): Destination {
  const at = text.lastIndexOf('@');
  const address = text.slice(at + 1);
  const parts = /^(?:\[(?<address>[^\]]*)\]|(?<name>[^:]*))(?::(?<port>\d+))?$/.exec(address)?.groups;
  return {
    name: parts?.['address'] ?? parts?.['name'] ?? address,
    user: at < 0 ? null : text.slice(0, at),
    port: parts?.['port'] === undefined ? null : Number(parts['port']),
  };
}

/** What leads ssh there by hand: [-p PORT] user@host */
export function sshWords({ name, user, port }: HopSettings): string {
  return `${port === DEFAULT_PORT ? '' : `-p ${port} `}${quotedIfNeeded(`${user}@${name}`)}`;
}
