/** Batches that Slurm schedules: a directory that all hosts of a cluster have, and a ledger to which each attempt of a task appends a line. */
import { chmodSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import type { BatchStatus } from '../../launcher/batch/serve/request.ts';
import { findProgram } from './capability.ts';
import { repository } from './cluster.ts';
import type { Command, Outcome } from './command.ts';
import type { Slurm } from './slurm.ts';

const ncclrun = join(repository, 'bin/ncclrun');

export class SlurmBatchRig implements AsyncDisposable {
  readonly directory: string;
  readonly #slurm: Slurm;

  private constructor(slurm: Slurm, directory: string) {
    this.#slurm = slurm;
    this.directory = directory;
  }

  static async open(slurm: Slurm): Promise<SlurmBatchRig> {
    const rig = new SlurmBatchRig(slurm, await mkdtemp(join(repository, 'build/test-batch-')));
    rig.replace('sbatch', 'exec REAL "$@"');
    return rig;
  }

  /** A shell command that says which attempt of which task it is. */
  get ledgerCommand(): string {
    return `echo "$NCCLRUN_TASK $NCCLRUN_ATTEMPT" >> ${this.#ledger}`;
  }

  /** Lines of the ledger, in alphabetical order. */
  ledger(): readonly string[] {
    try {
      return readFileSync(this.#ledger, 'utf8').trim().split('\n').toSorted();
    } catch {
      return [];
    }
  }

  /** A file with these jobs, as lines of YAML. LEDGER stands for the command that writes the ledger. */
  file(...jobs: readonly string[]): string {
    const path = join(this.directory, 'batch.yaml');
    const defaults = `defaults: { working_dir: ${this.directory}, output: "%x.%a.%r.out" }`;
    const lines = ['version: 1', 'name: test', defaults, 'jobs:', ...jobs.map((job) => `  - ${job}`)];
    writeFileSync(path, `${lines.join('\n').replaceAll('LEDGER', this.ledgerCommand)}\n`);
    return path;
  }

  /**
   * A program that stands before one of Slurm's in the PATH. REAL stands for that. It takes away the mark by which a test ends what a command has
   * left behind: jobs in Slurm are to outlive their command.
   */
  replace(program: string, script: string): void {
    const directory = join(this.directory, 'bin');
    mkdirSync(directory, { recursive: true });
    const path = join(directory, program);
    writeFileSync(
      path,
      `#!/bin/bash\nunset NCCLRUN_TEST_MARK\n${script.replaceAll('REAL', findProgram(program) ?? program)}\n`,
    );
    chmodSync(path, 0o755);
  }

  start(...words: readonly string[]): Command {
    return this.#slurm.start(this.#words(words));
  }

  async run(...words: readonly string[]): Promise<Outcome> {
    return await this.#slurm.run(this.#words(words));
  }

  /** `ncclrun batch` that ends by SIGKILL at the n-th point of its way (die-at.c); null: at none. */
  async killedBatch(
    file: string,
    library: string,
    at: number | null,
  ): Promise<Outcome & { readonly points: readonly string[] }> {
    const log = join(this.directory, 'points');
    const variables = [
      `LD_PRELOAD=${library}`,
      `DIE_LOG=${log}`,
      'DIE_WORD=batch',
      ...(at === null ? [] : [`DIE_AT=${at}`]),
    ];
    const main = join(repository, 'dist/bundle/main.cjs');
    // bin/ncclrun lets nobody preload a library; its Node takes it.
    const [env, ...words] = this.#words(['batch', file, '--via', 'slurm']);
    const argv = words.flatMap((word) => (word === ncclrun ? [...variables, process.execPath, main] : [word]));
    const outcome = await this.#slurm.run([env, ...argv]);
    return { ...outcome, points: readFileSync(log, 'utf8').trim().split('\n') };
  }

  /** Runs `ncclrun batch FILE --via slurm`. */
  async batch(file: string, ...words: readonly string[]): Promise<Outcome> {
    return await this.run('batch', file, '--via', 'slurm', ...words);
  }

  async status(id: string): Promise<BatchStatus> {
    const { stdout, stderr } = await this.run('jobs', id, '--json');
    if (stdout === '') throw new Error(`ncclrun jobs says nothing: ${stderr}`);
    const status: BatchStatus = JSON.parse(stdout);
    return status;
  }

  /** States by the tasks' names. */
  async states(id: string): Promise<Readonly<Record<string, string>>> {
    const { tasks } = await this.status(id);
    return Object.fromEntries(tasks.map(({ name, state }) => [name, state]));
  }

  /** Resolves when a task is in that state; asks as a user would. */
  async reaches(id: string, task: string, state: string, limitMs = 60_000): Promise<void> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const states = await this.states(id);
      if (states[task] === state) return;
      if (performance.now() > deadline) throw new Error(`${task} is ${states[task]}, not ${state}`);
    }
  }

  /** What its scripts and tasks have said, and what their records are, for a test that fails. */
  said(): readonly string[] {
    const files = readdirSync(this.directory, { recursive: true, encoding: 'utf8' });
    return files
      .filter((file) => /\.out$|\.ncclrun.*(?:decision|end\.json)$/u.test(file))
      .map((file) => `${file}: ${readFileSync(join(this.directory, file), 'utf8')}`);
  }

  /** Names of the batch's jobs that Slurm knows, those that have ended included. */
  async names(): Promise<readonly string[]> {
    const { stdout } = await this.#slurm.run(['squeue', '--noheader', '--states=all', '--format=%j']);
    return stdout
      .split('\n')
      .filter((name) => name !== '')
      .toSorted();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }

  #words(words: readonly string[]): [string, ...string[]] {
    const path = `PATH=${join(this.directory, 'bin')}:${process.env['PATH'] ?? ''}`;
    return ['env', path, `XDG_STATE_HOME=${this.directory}`, ncclrun, ...words];
  }

  get #ledger(): string {
    return join(this.directory, 'ledger');
  }
}
