/**
 * What we add to the user's ssh configuration, and only where that is silent: a key exchange that costs little
 * computing instead of OpenSSH's 75 ms (P-256 takes 5 ms less on each side than curve25519; every server since 2014 knows one of them), and a connection without Nagle's pauses
 * (native/dial).
 *
 * Asking ssh for its settings costs a process per host. So it is asked once, for no host in particular and before the hosts are
 * wanted, and says which files it has read; only if those speak of what we would set, or hide other files behind a host's name, is
 * it asked for each host.
 */
import { existsSync, readFileSync } from 'node:fs';
import { runTool } from './local.ts';
import { quote } from './shell.ts';

export type SshOption = readonly [name: string, value: string];

/** What `ssh -G` says of a destination, names in lower case; `files` are those that it has read. */
interface Answer {
  readonly settings: ReadonlyMap<string, string>;
  readonly files: readonly string[];
}

const KEY_EXCHANGE = '^ecdh-sha2-nistp256,curve25519-sha256,curve25519-sha256@libssh.org';
const CONNECT_SECONDS = '10';
/** Keywords that would make one host's settings differ from another's in what we add. */
const ours = /^\s*(kexalgorithms|proxycommand|proxyjump|proxyusefdpass|bindaddress|bindinterface|addressfamily)\b/im;
const conditionalInclude = /^\s*(host|match)\b[^]*^\s*include\b/im;

export class SshSettings {
  readonly #command: readonly string[];
  readonly #dialPath: string;
  readonly #general: Promise<Answer>;
  #defaults: Promise<Answer> | null = null;

  /** `command`: ssh and its first arguments. `dialPath`: the installation's ncclrun-dial. */
  constructor(command: readonly string[], dialPath: string) {
    this.#command = command;
    this.#dialPath = dialPath;
    this.#general = this.#ask(['--', 'localhost']);
  }

  /** Options for a destination (ssh's last arguments). None if ssh cannot tell: it will complain itself. */
  async options(destination: readonly string[]): Promise<readonly SshOption[]> {
    const general = await this.#general;
    if (general.settings.size === 0) return [];
    if (!general.files.some((path) => mayDiffer(path))) return [...this.#keyExchange(), ...this.#dial(general)];

    this.#defaults ??= this.#ask(['-F', 'none', '--', 'localhost']);
    const [answer, defaults] = await Promise.all([this.#ask(destination), this.#defaults]);
    const silent = answer.settings.get('kexalgorithms') === defaults.settings.get('kexalgorithms');
    return [...(silent ? this.#keyExchange() : []), ...(isDirect(answer) ? this.#dial(answer) : [])];
  }

  #keyExchange(): SshOption[] {
    return [['KexAlgorithms', KEY_EXCHANGE]];
  }

  #dial({ settings }: Answer): SshOption[] {
    if (!existsSync(this.#dialPath)) return [];
    const configured = settings.get('connecttimeout') ?? 'none';
    const seconds = /^[1-9][0-9]*$/.test(configured) ? configured : CONNECT_SECONDS;
    const command = `${quote(this.#dialPath).replaceAll('%', '%%')} %h %p ${seconds}`;
    return [
      ['ProxyCommand', command],
      ['ProxyUseFdpass', 'yes'],
    ];
  }

  async #ask(words: readonly string[]): Promise<Answer> {
    const said = await runTool([...this.#command, '-v', '-G', ...words]);
    const lines = said.split('\n').filter((line) => !line.startsWith('debug'));
    const settings = new Map(lines.map((line) => [line.split(' ', 1)[0] ?? '', line.slice(line.indexOf(' ') + 1)]));
    const files = [...said.matchAll(/reading configuration data (.*?)\r?$/gim)].flatMap(([, path]) => path ?? []);
    return { settings: settings.has('hostname') ? settings : new Map(), files };
  }
}

/** Whether a configuration file may give hosts different values of what we add. One that we cannot read may. */
function mayDiffer(path: string): boolean {
  try {
    const content = readFileSync(path, 'utf8');
    return ours.test(content) || conditionalInclude.test(content);
  } catch {
    return true;
  }
}

/** No proxy, no address family or interface of the user's choice: we may connect ourselves. */
function isDirect({ settings }: Answer): boolean {
  const unset = (name: string) => ['none', undefined].includes(settings.get(name));
  const names = ['proxycommand', 'proxyjump', 'bindaddress', 'bindinterface'];
  return names.every(unset) && ['any', undefined].includes(settings.get('addressfamily'));
}
