/** Determines the jump hosts to a host, which comes last, and whether our own ssh can connect to it. */
import { existsSync } from 'node:fs';
import type { Answer, Destination, SshConfiguration } from '../ssh-config/configuration.ts';
import type { KnownHostsFiles } from '../known-hosts/files.ts';
import { impossibleAlgorithms } from './algorithms.ts';
import type { UserOrders } from './algorithms.ts';
import { recordsOf } from './host-key.ts';
import type { Identities } from './identities.ts';
import { hopSettings } from './settings.ts';
import type { HopSettings } from './settings.ts';

const MAX_JUMPS = 8;

export interface Route {
  readonly hops: readonly HopSettings[];
  readonly orders: UserOrders;
  /** What the configuration asks for and our own ssh does not do. */
  readonly obstacle: Obstacle | null;
}

interface Obstacle {
  /** "ProxyCommand is set for h1" */
  readonly what: string;
  /** True if our ssh cannot connect at all; false if another of the user's keys may work. */
  readonly hard: boolean;
  /** What to do where the system's ssh would fail, too. */
  readonly remedy?: string;
  /** The user's keys that we cannot use, each with the reason, where that is the obstacle. */
  readonly leftOut?: readonly string[];
}

type Configuration = Pick<SshConfiguration, 'of' | 'mentions'>;
type Keys = Pick<Identities, 'agentKeys' | 'offers'>;

export class SshRoutes {
  readonly #configuration: Configuration;
  readonly #identities: Keys;
  readonly #knownHosts: KnownHostsFiles;

  constructor(configuration: Configuration, identities: Keys, knownHosts: KnownHostsFiles) {
    this.#configuration = configuration;
    this.#identities = identities;
    this.#knownHosts = knownHosts;
  }

  async to(destination: Destination): Promise<Route> {
    const hops: HopSettings[] = [];
    let obstacle: Obstacle | null = null;
    let next: Destination | null = destination;
    /** Jump hosts listed before `next`; null if its own configuration has them. */
    let before: readonly Destination[] | null = null;
    /** Hosts whose own configuration led on. */
    const asked: HopSettings[] = [];
    while (next !== null) {
      const answer: Answer = await this.#configuration.of(next);
      const settings: HopSettings = hopSettings(next, answer);
      hops.unshift(settings);
      obstacle ??= await this.#obstacle(settings, answer);
      if (before === null && settings.jumps.length > 0) {
        if (asked.some((earlier) => isSame(earlier, settings))) {
          obstacle = circleTo(destination.name, [...asked, settings]);
          break;
        }
        asked.push(settings);
      }
      const jumps: readonly Destination[] = before ?? settings.jumps;
      next = jumps.at(-1) ?? null;
      before = jumps.length > 1 ? jumps.slice(0, -1) : null;
      if (hops.length <= MAX_JUMPS || next === null) continue;
      obstacle ??= { what: `more than ${MAX_JUMPS} jump hosts lead to ${destination.name}`, hard: true };
      next = null;
    }
    return { hops, orders: await this.#orders(), obstacle };
  }

  async #orders(): Promise<UserOrders> {
    const mentions = (word: RegExp) => this.#configuration.mentions(word);
    const [kex, ciphers, macs] = await Promise.all([
      mentions(/^\s*kexalgorithms\b/im),
      mentions(/^\s*ciphers\b/im),
      mentions(/^\s*macs\b/im),
    ]);
    return { kex, ciphers, macs };
  }

  async #obstacle(settings: HopSettings, { settings: configured, error }: Answer): Promise<Obstacle | null> {
    if (error !== null) return { what: `ssh -G fails for ${settings.name}: ${error}`, hard: true };
    const set = (name: string) => !['none', 'no', 'false', '', undefined].includes(configured.get(name)?.[0]);
    const hard = settingsBeyondUs.find(([name]) => set(name));
    if (hard !== undefined) return { what: `${hard[1]} is set for ${settings.name}`, hard: true };
    const impossible = impossibleAlgorithms(settings);
    if (impossible !== null)
      return { what: `none of the ${impossible} of ${settings.name} is one of ssh2's`, hard: true };
    const what = await this.#credential(settings, configured);
    if (what !== null) return { what, hard: false };
    const off = withoutKeys(settings.name, configured);
    if (off !== null) return { what: off, hard: false, leftOut: [off] };
    const authority = this.#authority(settings);
    return authority === null ? this.#onlyGssapi(settings, configured) : { what: authority, hard: false };
  }

  /** Distributions turn GSSAPI on by default, so its user may be one who has no key that we can use. */
  async #onlyGssapi(settings: HopSettings, configured: Answer['settings']): Promise<Obstacle | null> {
    if (configured.get('gssapiauthentication')?.[0] !== 'yes') return null;
    const { offers, leftOut } = await this.#identities.offers(settings);
    if (offers.length > 0) return null;
    const what = `only GSSAPI is left for ${settings.name}: there is no key that ssh2 can use`;
    return { what, hard: false, leftOut };
  }

  /** Whoever has a certificate, a hardware key or a ticket has it for a reason: the plain keys beside it may not be let in. */
  async #credential(settings: HopSettings, configured: Answer['settings']): Promise<string | null> {
    const certificates = [
      ...(configured.get('certificatefile') ?? []),
      ...settings.identityFiles.map((file) => `${file}-cert.pub`).filter((file) => existsSync(file)),
    ];
    if (certificates.length > 0) return `there is a certificate, ${certificates[0]}`;
    const hardware = settings.identityFiles.find((file) => file.endsWith('_sk') && existsSync(file));
    if (hardware !== undefined) return `there is a security key, ${hardware}`;
    const special = (await this.#identities.agentKeys(settings.agent)).find(({ type }) =>
      /^sk-|-cert-v\d+@/.test(type),
    );
    if (special !== undefined) return `the agent holds a ${special.type}`;
    return null;
  }

  #authority(settings: HopSettings): string | null {
    const [authority] = recordsOf(settings, this.#knownHosts).authorities;
    return authority === undefined
      ? null
      : `the key of ${settings.name} is known by a certificate authority (${authority.file}:${authority.line})`;
  }
}

/** Why no key is offered at all; null if one is. */
function withoutKeys(name: string, configured: Answer['settings']): string | null {
  const [isOn] = configured.get('pubkeyauthentication') ?? [];
  if (isOn === 'false' || isOn === 'no') return `PubkeyAuthentication is off for ${name}`;
  const [preferred] = configured.get('preferredauthentications') ?? [];
  const leavesOut = preferred !== undefined && !preferred.split(',').includes('publickey');
  return leavesOut ? `PreferredAuthentications of ${name} leaves out public keys` : null;
}

function isSame(one: HopSettings, other: HopSettings): boolean {
  return (['name', 'hostName', 'port', 'user'] as const).every((key) => one[key] === other[key]);
}

/** The system's ssh starts one ssh after another for it, until time is up. */
function circleTo(name: string, hosts: readonly HopSettings[]): Obstacle {
  const last = hosts.at(-1)?.name ?? name;
  return {
    what: `the jump hosts of ${name} lead in a circle: ${hosts.map((host) => host.name).join(', ')}`,
    hard: true,
    remedy: `end it in ~/.ssh/config before the other Host lines: Host ${last}, ProxyJump none`,
  };
}

/** As ssh -G names them, and as people write them. */
const settingsBeyondUs = [
  ['proxycommand', 'ProxyCommand'],
  ['knownhostscommand', 'KnownHostsCommand'],
  ['pkcs11provider', 'PKCS11Provider'],
  ['controlpath', 'ControlPath'],
  ['hostbasedauthentication', 'HostbasedAuthentication'],
  ['verifyhostkeydns', 'VerifyHostKeyDNS'],
  ['revokedhostkeys', 'RevokedHostKeys'],
  ['bindinterface', 'BindInterface'],
] as const;
