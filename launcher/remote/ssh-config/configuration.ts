/**
 * The user's ssh configuration, as `ssh -G` explains it. Asking costs a process per host. So ssh is asked once, for no host in
 * particular and before the hosts are wanted, and says which files it has read; whoever needs settings asks for a host only if those
 * files may tell hosts apart.
 */
import { readFileSync } from 'node:fs';
import { Limiter } from '../limiter.ts';
import { runTool } from '../local.ts';

/** What `ssh -G` says of a destination, names in lower case; `files` are those that it has read. Nothing if there is no ssh. */
export interface Answer {
  readonly settings: ReadonlyMap<string, readonly string[]>;
  readonly files: readonly string[];
  /** Why ssh, which is there, says nothing: a mistake in a file, say. */
  readonly complaint: string | null;
}

/** A host as the user names it; null: the configuration says. */
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

  /** What holds for a destination: the general answer, where no file tells hosts apart; else ssh is asked for this one. */
  async of({ name, user, port }: Destination): Promise<Answer> {
    const general = await this.general;
    if (general.settings.size === 0) return general;
    const one = (setting: string) => general.settings.get(setting)?.[0];
    const unchanged = one('hostname') === NOBODY && ['false', 'no', undefined].includes(one('canonicalizehostname'));
    if (!unchanged || (await this.mentions(conditionalBlock))) return this.ask(destinationWords(name, user, port));
    return { ...general, settings: new Map([...general.settings, ['hostname', [name]]]) };
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

  async #ask(words: readonly string[]): Promise<Answer> {
    const leave = await this.#asking.enter();
    const said = await runTool([...this.#command, '-v', '-G', ...words]).finally(leave);
    const settings = new Map<string, string[]>();
    for (const line of said.split(/\r?\n/)) {
      if (line.startsWith('debug')) continue;
      const [name = ''] = line.split(' ', 1);
      const values = settings.get(name);
      if (values === undefined) settings.set(name, [line.slice(name.length + 1)]);
      else values.push(line.slice(name.length + 1));
    }
    const files = [...said.matchAll(/reading configuration data (.*?)\r?$/gim)].flatMap(([, path]) => path ?? []);
    if (settings.has('hostname')) return { settings, files, complaint: null };
    const complaint = said.split(/\r?\n/).findLast((line) => line.trim() !== '' && !line.startsWith('debug'));
    return { settings: new Map(), files, complaint: complaint ?? null };
  }
}

/** A block for some hosts only, in an ssh_config. */
const conditionalBlock = /^\s*(host(?!\s+"?\*"?\s*$)|match(?!\s+all\s*$))\b/im;

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
