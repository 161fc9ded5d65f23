/** A shell with job control at a terminal of its own, which `script` provides: what is typed, and what is shown. */
import { spawnSync } from 'node:child_process';
import { Command, type CommandOptions } from './command.ts';

/** Null, or why there can be no terminal here. */
export function terminalUnavailable(): string | null {
  return spawnSync('script', ['--version']).status === 0 ? null : 'script (util-linux) is not installed';
}

const prompt = 'ready> ';

export class Terminal implements AsyncDisposable {
  readonly command: Command;
  #shown = '';
  #news = new EventTarget();

  private constructor(options: CommandOptions) {
    const shell = `env NO_COLOR=1 PS1='${prompt}' bash --norc --noprofile -i`;
    this.command = Command.start(['-qec', shell, '/dev/null'], { ...options, program: 'script', stdin: 'pipe' });
    this.command.process.stdout?.on('data', (bytes: Buffer) => {
      this.#shown += bytes.toString();
      this.#news.dispatchEvent(new Event('news'));
    });
    void this.command.outcome.then(() => this.#news.dispatchEvent(new Event('news')));
  }

  /** Resolves when the shell waits for a command. */
  static async open(options: CommandOptions = {}): Promise<Terminal> {
    const terminal = new Terminal(options);
    await terminal.shows(prompt);
    return terminal;
  }

  /** As fingers do: `\x03` is ^C, `\x1a` ^Z, `\n` the return key. */
  type(text: string): void {
    this.command.process.stdin?.write(text);
  }

  /** Resolves when `text` is shown, after all that was waited for before. Rejects if the terminal ends without it. */
  async shows(text: string): Promise<void> {
    for (;;) {
      const at = this.#shown.indexOf(text);
      if (at !== -1) {
        this.#shown = this.#shown.slice(at + text.length);
        return;
      }
      const { exitCode, signalCode } = this.command.process;
      if (exitCode !== null || signalCode !== null) throw new Error(`ended without ${text}:\n${this.#shown}`);
      await new Promise((resolve) => this.#news.addEventListener('news', resolve, { once: true }));
    }
  }

  /** Types a command and resolves when the shell waits for the next one. */
  async run(line: string): Promise<void> {
    this.type(`${line}\n`);
    await this.shows(prompt);
  }

  /** The window is closed: whoever shows the terminal is gone. */
  close(): void {
    this.command.signal('SIGKILL');
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.command[Symbol.asyncDispose]();
  }
}
