/** Batches of real processes: a state directory of their own, and a ledger to which each attempt of a task appends a line. */
import { readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repository } from './cluster.ts';
import { Command } from './command.ts';

/** A shell command that says which attempt of which task it is. */
export const LEDGER = 'echo "$NCCLRUN_TASK $NCCLRUN_ATTEMPT" >> "$LEDGER"';

export class BatchRig implements AsyncDisposable {
  readonly directory: string;

  private constructor(directory: string) {
    this.directory = directory;
  }

  /** In a directory of this machine's own. */
  static async open(): Promise<BatchRig> {
    return new BatchRig(await mkdtemp(join(tmpdir(), 'ncclrun-batch-')));
  }

  /** In one that a cluster's hosts have, too. */
  static async openShared(): Promise<BatchRig> {
    return new BatchRig(await mkdtemp(join(repository, 'build/test-batch-')));
  }

  get environment(): NodeJS.ProcessEnv {
    return { ...process.env, XDG_STATE_HOME: this.directory, LEDGER: this.#ledger, NCCLRUN_HOST: 'localhost:4' };
  }

  /** Writes the batch file. */
  file(text: string): string {
    const path = join(this.directory, 'batch.yaml');
    writeFileSync(path, text);
    return path;
  }

  async run(
    words: readonly string[],
    environment: NodeJS.ProcessEnv = {},
  ): Promise<{ status: number | null; stdout: string; stderr: string }> {
    return await Command.run(words, {
      environment: { ...this.environment, ...environment },
      directory: this.directory,
    });
  }

  /** Lines of the ledger, in alphabetical order. */
  ledger(): readonly string[] {
    try {
      return readFileSync(this.#ledger, 'utf8').trim().split('\n').toSorted();
    } catch {
      return [];
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true });
  }

  get #ledger(): string {
    return join(this.directory, 'ledger');
  }
}
