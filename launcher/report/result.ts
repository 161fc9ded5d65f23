/** The result object: to stdout for --json, to a file for --report. */
import { open, type FileHandle } from 'node:fs/promises';
import { printableLines } from '../../control/printable.ts';
import type { Failure } from '../model/failure.ts';
import type { JobResult, Reporter } from '../model/types.ts';
import { unwrittenFile } from './unwritten.ts';
import type { Writer } from './writer.ts';

/** Prints one line, the result object as JSON. */
export class JsonResultReporter implements Reporter {
  readonly #writer: Writer;

  constructor(writer: Writer) {
    this.#writer = writer;
  }

  event(): void {}

  async output(): Promise<void> {}

  async result(result: JobResult): Promise<void> {
    const { recorder: _, ...printed } = result; // megabytes; --report has them
    await this.#writer.print(`${JSON.stringify(printed)}\n`);
  }
}

/** Writes the result object to a file. */
export class ResultFileReporter implements Reporter {
  readonly #file: FileHandle;
  readonly #path: string;
  #unwritten: Failure | null = null;

  private constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  /** Empties the file at once: a report must never be an older job's. Rejects as node:fs does. */
  static async open(path: string): Promise<ResultFileReporter> {
    return new ResultFileReporter(await open(path, 'w'), path);
  }

  event(): void {}

  async output(): Promise<void> {}

  async result(result: JobResult): Promise<void> {
    try {
      await this.#file.writeFile(printableLines(`${JSON.stringify(result, null, 2)}\n`));
    } catch (error) {
      this.#unwritten = unwrittenFile('--report', this.#path, error);
    }
    await this.#file.close();
  }

  unwritten(): Failure | null {
    return this.#unwritten;
  }
}
