/**
 * The user's ssh configuration from `ssh -G`, which costs a process per call. The launcher calls it early, once for no particular host, to
 * learn which files ssh reads. Later it calls it for one host of each kind that those files distinguish (host-blocks.ts), and for every
 * host only if the files are not plain.
 */
import { readFileSync } from 'node:fs';
import { Limiter } from '../shell/limiter.ts';
import { runTool } from '../../local/host.ts';
import { HostBlocks } from './host-blocks.ts';

/** Output of `ssh -G` for a destination, names in lower case; `files` are those that ssh read. Empty if there is no ssh. */
export interface Answer {
  readonly settings: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly string[];
  /** ssh's error, such as a mistake in a file; null if it succeeded. */
  readonly error: string | null;
}

/** A host as the user names it; null where the configuration decides. */
export interface Destination {
  readonly name: string;
  readonly user: string | null;
  readonly port: number | null;
}

/** Stands for a host that no pattern means. */
const NOBODY = 'localhost';

/** Processes of ssh at once. */
const MAX_ASKING = 8;

export class SshConfiguration {
  readonly #asking = new Limiter(MAX_ASKING);
  readonly #command: readonly string[];
  readonly #answers = new Map<string, Promise<Answer>>();
  readonly #contents = new Map<string, string | null>();
  /** Of each kind of host the one that ssh was asked about. */
  readonly #kinds = new Map<string, string>();
  #blocks: HostBlocks | null | undefined;
  /** Asked for no host in particular. */
  readonly general: Promise<Answer>;

  /** `command`: ssh and its first arguments. */
  constructor(command: readonly string[] = ['ssh']) {
    this.#command = command;
    this.general = this.ask(['--', NOBODY]);
  }

  /** `words`: ssh's last arguments. The same question is asked once. */
  ask(words: readonly string[]): Promise<Answer> {
    const key = JSON.stringify(words);
    const known = this.#answers.get(key);
    if (known !== undefined) return known;
    const answer = this.#ask(words);
    this.#answers.set(key, answer);
    return answer;
  }

  /** What holds for a destination. A user and port of its own are not in it where a host of the same kind was asked about. */
  async of({ name, user, port }: Destination): Promise<Answer> {
    const general = await this.general;
    if (general.settings.size === 0) return general;
    return (await this.#byKind(name, general.files)) ?? this.ask(destinationWords(name, user, port));
  }

  /** Null: ssh has to be asked about this host itself. */
  async #byKind(name: string, files: readonly string[]): Promise<Answer | null> {
    const share = this.#blocksOf(files)?.of(name);
    if (share === undefined || share === null) return null;
    const known = this.#kinds.get(share.kind) ?? name;
    this.#kinds.set(share.kind, known);
    const answer = await this.ask(['--', known]);
    const settingOf = (setting: string) => answer.settings.get(setting)?.[0];
    // That ssh calls the one as we think vouches for the others.
    if (settingOf('hostname') !== this.#blocks?.of(known)?.hostName) return null;
    if (!['false', 'no', undefined].includes(settingOf('canonicalizehostname'))) return null;
    return { ...answer, settings: new Map([...answer.settings, ['host', [name]], ['hostname', [share.hostName]]]) };
  }

  #blocksOf(files: readonly string[]): HostBlocks | null {
    if (this.#blocks !== undefined) return this.#blocks;
    this.#blocks = HostBlocks.read(files.map((path) => ({ path, text: this.#content(path) })));
    const nobody = this.#blocks?.of(NOBODY);
    if (nobody !== undefined && nobody !== null) this.#kinds.set(nobody.kind, NOBODY);
    return this.#blocks;
  }

  /** Whether a file that the general answer came from matches. One that we cannot read may. */
  async mentions(...patterns: readonly RegExp[]): Promise<boolean> {
    const { files } = await this.general;
    const contents = files.map((path) => this.#content(path));
    return contents.some((content) => content === null || patterns.some((pattern) => pattern.test(content)));
  }

  #content(path: string): string | null {
    let content = this.#contents.get(path);
    if (content === undefined) {
      content = readOrNull(path);
      this.#contents.set(path, content);
    }
    return content;
  }

  /** With ForkAfterAuthentication ssh insists on a command, and with RemoteCommand on none. */
  async #print(words: readonly string[]): Promise<string> {
    const command = [...this.#command, '-v', '-G', ...words];
    const answer = await runTool(command);
    return answer.includes('Cannot fork into background without a command') ? runTool([...command, 'true']) : answer;
  }

  async #ask(words: readonly string[]): Promise<Answer> {
    const leave = await this.#asking.enter();
    const answer = await this.#print(words).finally(leave);
    const settings = new Map<string, string[]>();
    for (const line of answer.split(/\r?\n/)) {
      if (line.startsWith('debug')) continue;
      const [name = ''] = line.split(' ', 1);
      const values = settings.get(name);
      if (values === undefined) settings.set(name, [line.slice(name.length + 1)]);
      else values.push(line.slice(name.length + 1));
    }
    const files = [...answer.matchAll(/reading configuration data (.*?)\r?$/gim)].flatMap(([, path]) => path ?? []);
    if (settings.has('hostname')) return { settings, files, error: null };
    const error = answer.split(/\r?\n/).findLast((line) => line.trim() !== '' && !line.startsWith('debug'));
    return { settings: new Map(), files, error: error ?? null };
  }
}

/** A destination as ssh takes it. What begins with a dash is still a name. */
export function destinationWords(name: string, user: string | null, port: number | null): string[] {
  return [...(user === null ? [] : ['-l', user]), ...(port === null ? [] : ['-p', String(port)]), '--', name];
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}
