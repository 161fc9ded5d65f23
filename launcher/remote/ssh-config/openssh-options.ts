/**
 * What we add to the user's ssh configuration, and only where that is silent: a key exchange that costs little computing instead of
 * OpenSSH's 75 ms (P-256 takes 5 ms less on each side than curve25519; every server since 2014 knows one of them), and a connection
 * without Nagle's pauses (native/dial).
 */
import { existsSync } from 'node:fs';
import { quote } from '../shell/shell.ts';
import type { Answer, SshConfiguration } from './configuration.ts';

export type SshOption = readonly [name: string, value: string];

const KEY_EXCHANGE = '^ecdh-sha2-nistp256,curve25519-sha256,curve25519-sha256@libssh.org';
const CONNECT_SECONDS = '10';
/** Our command is run, its input is ours, and ssh stays: whatever a tunnel's configuration says. */
const ordinarySession: readonly SshOption[] = [
  ['SessionType', 'default'],
  ['StdinNull', 'no'],
  ['ForkAfterAuthentication', 'no'],
];
const ofSession = /^\s*(sessiontype|stdinnull|forkafterauthentication)\b/im;
/** Keywords that would make one host's settings differ from another's in what we add. */
const ours = /^\s*(kexalgorithms|proxycommand|proxyjump|proxyusefdpass|bindaddress|bindinterface|addressfamily)\b/im;
/** Match exec, ProxyCommand, LocalCommand; not in a comment. */
const commands = /^[^#\n]*(\bexec\b|command)/im;
const conditionalInclude = /^\s*(host|match)\b[^]*^\s*include\b/im;

export class OpenSshOptions {
  readonly #configuration: SshConfiguration;
  readonly #dialPath: string;

  /** `dialPath`: the installation's ncclrun-dial. */
  constructor(configuration: SshConfiguration, dialPath: string) {
    this.#configuration = configuration;
    this.#dialPath = dialPath;
  }

  /** Options for a destination (ssh's last arguments). None if ssh fails: it will report the error itself. */
  async options(destination: readonly string[]): Promise<readonly SshOption[]> {
    const configuration = this.#configuration;
    const general = await configuration.general;
    if (general.settings.size === 0) return [];
    // Only an ssh that knows these settings, which are newer than others, may be told.
    const isTold = general.settings.has('sessiontype') && (await configuration.mentions(ofSession));
    const session = isTold ? ordinarySession : [];
    if (!(await configuration.mentions(ours, conditionalInclude)))
      return [...session, ...this.#keyExchange(), ...this.#dial(general)];

    const [answer, defaults] = await Promise.all([
      configuration.ask(destination),
      configuration.ask(['-F', 'none', '--', 'localhost']),
    ]);
    const silent = answer.settings.get('kexalgorithms')?.[0] === defaults.settings.get('kexalgorithms')?.[0];
    return [...session, ...(silent ? this.#keyExchange() : []), ...(isDirect(answer) ? this.#dial(answer) : [])];
  }

  /**
   * Changes to the environment of ssh, which starts the user's shell to start a ProxyCommand: a large one costs more than all else about
   * the connection's beginning. Where the configuration has commands of the user's, his shell runs them.
   */
  async environment(): Promise<readonly string[]> {
    return (await this.#configuration.mentions(commands)) ? [] : ['SHELL=/bin/sh'];
  }

  #keyExchange(): SshOption[] {
    return [['KexAlgorithms', KEY_EXCHANGE]];
  }

  #dial({ settings }: Answer): SshOption[] {
    if (!existsSync(this.#dialPath)) return [];
    const configured = settings.get('connecttimeout')?.[0] ?? 'none';
    const seconds = /^[1-9][0-9]*$/.test(configured) ? configured : CONNECT_SECONDS;
    const command = `${quote(this.#dialPath).replaceAll('%', '%%')} %h %p ${seconds}`;
    return [
      ['ProxyCommand', command],
      ['ProxyUseFdpass', 'yes'],
    ];
  }
}

/** No proxy, no address family or interface of the user's choice: we may connect ourselves. */
function isDirect({ settings }: Answer): boolean {
  const unset = (name: string) => ['none', undefined].includes(settings.get(name)?.[0]);
  const names = ['proxycommand', 'proxyjump', 'bindaddress', 'bindinterface'];
  return names.every(unset) && ['any', undefined].includes(settings.get('addressfamily')?.[0]);
}
