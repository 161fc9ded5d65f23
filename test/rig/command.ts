/**
 * The real command, started as a user starts it, on this machine or on a cluster's login node. Everything it starts inherits a mark in its
 * environment, by which a test finds what was left behind.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { constants } from 'node:os';
import { join } from 'node:path';
import type { JobResult } from '../../launcher/model/types.ts';
import { type Cluster, repository } from './cluster.ts';
import { noteEnded, noteStarted } from './ended-commands.ts';
import { LineSplitter } from './lines.ts';
import { type ProcessEntry, withEnvironment } from './processes.ts';
import { parseResult } from './result.ts';
import { until } from './until.ts';

export interface CommandOptions {
  /** Run on this cluster's login node, else on this machine. */
  readonly cluster?: Cluster;
  /** Laid over the usual environment. */
  readonly environment?: NodeJS.ProcessEnv;
  readonly directory?: string;
  /** Another program than ncclrun. */
  readonly program?: string;
  /** Standard input: nothing (the default), or a pipe that the test writes to. */
  readonly stdin?: 'pipe' | 'ignore';
}

export interface Outcome {
  /** As a shell's $? would be: 128 + signal where a signal ended the command. */
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
  readonly milliseconds: number;
}

/** The checkout's, or another installation's (.ci/node-22). */
const ncclrun = process.env['NCCLRUN_TEST_COMMAND'] ?? join(repository, 'bin/ncclrun');

export class Command implements AsyncDisposable {
  readonly process: ChildProcess;
  readonly mark = `NCCLRUN_TEST_MARK=${randomUUID()}`;
  /** Resolves when the command and its streams have ended. */
  readonly outcome: Promise<Outcome>;
  #lines = { stdout: new Array<string>(), stderr: new Array<string>() };
  #news = new EventTarget();
  #ended = false;

  private constructor(argv: readonly string[], options: CommandOptions) {
    const full = [options.program ?? ncclrun, ...argv];
    const directory = options.directory ?? repository;
    const [file, parameters] = options.cluster?.command(full, directory) ?? [full[0] ?? '', full.slice(1)];
    const [name, value] = this.mark.split('=');
    const usual = options.cluster?.environment() ?? process.env;
    const started = performance.now();
    this.process = spawn(file, parameters, {
      cwd: options.cluster === undefined ? directory : '/',
      env: { ...usual, ...options.environment, [name ?? '']: value },
      stdio: [options.stdin ?? 'ignore', 'pipe', 'pipe'],
      detached: true, // no part of the test runner's process group: a signal meant for one is not for both
    });
    const chunks = { stdout: new Array<Buffer>(), stderr: new Array<Buffer>() };
    for (const stream of ['stdout', 'stderr'] as const) {
      const splitter = new LineSplitter();
      this.process[stream]?.on('data', (bytes: Buffer) => {
        chunks[stream].push(bytes);
        this.#lines[stream].push(...splitter.push(bytes));
        this.#news.dispatchEvent(new Event('news'));
      });
    }
    noteStarted(this);
    this.outcome = this.#untilEnded(started, chunks);
  }

  async #untilEnded(started: number, chunks: { stdout: Buffer[]; stderr: Buffer[] }): Promise<Outcome> {
    await once(this.process, 'close');
    this.#ended = true;
    this.#news.dispatchEvent(new Event('news'));
    const { exitCode, signalCode } = this.process;
    const status = exitCode ?? 128 + (signalCode === null ? 0 : constants.signals[signalCode]);
    const [stdout, stderr] = [chunks.stdout, chunks.stderr].map((list) => Buffer.concat(list).toString('utf8'));
    const outcome: Outcome = {
      status,
      stdout: stdout ?? '',
      stderr: withoutWaiting(stderr ?? ''),
      milliseconds: performance.now() - started,
    };
    noteEnded(this, this.process.spawnargs, outcome);
    return outcome;
  }

  static start(argv: readonly string[], options: CommandOptions = {}): Command {
    return new Command(argv, options);
  }

  /** Starts the command, waits for its end and for the end of all that it started. */
  static async run(argv: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
    await using command = new Command(argv, options);
    return await command.outcome;
  }

  /** Runs with --json; the outcome's stdout must be exactly one result object. */
  static async result(
    argv: readonly string[],
    options: CommandOptions = {},
  ): Promise<JobResult & { outcome: Outcome }> {
    const outcome = await Command.run(['--json', ...argv], options);
    return { ...parseResult(outcome.stdout), outcome };
  }

  get pid(): number {
    return this.process.pid ?? 0;
  }

  /** Resolves with the first line (also an earlier one) that matches; rejects if the command ends without it. */
  async line(stream: 'stdout' | 'stderr', pattern: RegExp): Promise<string> {
    for (;;) {
      const found = this.#lines[stream].find((line) => pattern.test(line));
      if (found !== undefined) return found;
      if (this.#ended) throw new Error(`ended without ${String(pattern)}:\n${this.#lines[stream].join('\n')}`);
      await new Promise((resolve) => this.#news.addEventListener('news', resolve, { once: true }));
    }
  }

  /** Sends a signal to the launcher alone, by its pid. */
  signal(name: NodeJS.Signals): void {
    process.kill(this.pid, name);
  }

  /** Rejects if the command took longer than that from now. */
  async endedWithin(limitMs: number): Promise<Outcome> {
    const started = performance.now();
    const outcome = await this.outcome;
    const took = performance.now() - started;
    if (took > limitMs) throw new Error(`ended after ${took} ms, not ${limitMs}`);
    return outcome;
  }

  /** What the command started and still lives; not the command itself. */
  survivors(): ProcessEntry[] {
    return withEnvironment(this.mark).filter((entry) => entry.pid !== this.pid);
  }

  /** Resolves with the milliseconds until nothing was left; rejects, naming the survivors, after the limit. */
  async nothingLeft(limitMs = 10_000): Promise<number> {
    const started = performance.now();
    try {
      await until('nothing left', () => this.survivors().length === 0, limitMs);
    } catch {
      const left = this.survivors().map((entry) => `${entry.pid} ${entry.state} ${entry.argv.join(' ')}`);
      throw new Error(`left behind after ${limitMs} ms:\n${left.join('\n')}`);
    }
    return performance.now() - started;
  }

  /** Ends what is left of a command whose test failed. */
  async [Symbol.asyncDispose](): Promise<void> {
    if (!this.#ended) this.process.kill('SIGKILL');
    for (const entry of this.survivors()) {
      try {
        process.kill(entry.pid, 'SIGKILL');
      } catch {
        // ended meanwhile
      }
    }
    await this.outcome;
  }
}

/** A start that takes long on a loaded machine says so after some seconds, which is none of what tests are about. */
function withoutWaiting(stderr: string): string {
  return stderr.replaceAll(/^ncclrun: \d+\/\d+ hosts? up: waiting for .*\n/gmu, '');
}
