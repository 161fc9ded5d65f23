/** Taking times: contestants in turns within one run, so that a busy minute hits all of them, and medians. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import type { Cluster } from '../test/rig/cluster.ts';

export interface Contestant {
  readonly name: string;
  /** One figure (milliseconds, microseconds, …), or null when it did not finish. */
  readonly measure: () => Promise<number | null>;
}

/** Medians over `samples` rounds after one warm-up round; null where most of a contestant's samples failed. */
export async function interleaved(
  contestants: readonly Contestant[],
  samples: number,
): Promise<Map<string, number | null>> {
  const taken = await rounds(contestants, samples);
  return new Map([...taken].map(([name, values]) => [name, median(values)]));
}

/** What each contestant has measured in each of `samples` rounds after one warm-up round. */
export async function rounds(
  contestants: readonly Contestant[],
  samples: number,
): Promise<Map<string, (number | null)[]>> {
  const taken = new Map(contestants.map(({ name }) => [name, new Array<number | null>()]));
  for (let round = 0; round <= samples; round++) {
    for (const { name, measure } of contestants) {
      const value = await measure();
      if (round > 0) taken.get(name)?.push(value);
    }
  }
  return taken;
}

/** The median of `samples` measurements of ours alone. */
export async function medianOf(samples: number, measure: Contestant['measure']): Promise<number | null> {
  const taken: (number | null)[] = [];
  for (let sample = 0; sample < samples; sample++) taken.push(await measure());
  return median(taken);
}

/** The middle value; failures (null) count as infinitely slow. */
export function median(values: readonly (number | null)[]): number | null {
  const sorted = values.map((value) => value ?? Infinity).toSorted((a, b) => a - b);
  const middle = sorted[Math.floor((sorted.length - 1) / 2)];
  return middle === undefined || middle === Infinity ? null : middle;
}

export interface RunOptions {
  readonly environment?: NodeJS.ProcessEnv;
  readonly cluster?: Cluster | null;
  /** After this long the command and its process group are killed. */
  readonly limitMs?: number;
}

export interface Finished {
  readonly status: number | null;
  readonly milliseconds: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a command to its end; the time is from the spawn to the exit of its process. */
export async function runCommand(argv: readonly string[], options: RunOptions = {}): Promise<Finished> {
  const cluster = options.cluster ?? null;
  const [file, parameters] = cluster?.command(argv) ?? [argv[0] ?? '', argv.slice(1)];
  const environment = { ...(cluster?.environment() ?? process.env), ...options.environment };
  const started = performance.now();
  const child = spawn(file, parameters, { env: environment, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let milliseconds = 0;
  child.on('exit', () => (milliseconds = performance.now() - started));
  const text = { stdout: '', stderr: '' };
  child.stdout.on('data', (bytes: Buffer) => (text.stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (text.stderr += bytes.toString()));
  const limit = setTimeout(() => process.kill(-(child.pid ?? 0), 'SIGKILL'), options.limitMs ?? 30_000);
  await once(child, 'close');
  clearTimeout(limit);
  return { status: child.exitCode, milliseconds, ...text };
}

/** Milliseconds of a command that must succeed; null if it failed or hung. The first failure's reason goes to stderr. */
export async function launchMilliseconds(argv: readonly string[], options: RunOptions = {}): Promise<number | null> {
  const finished = await runCommand(argv, options);
  if (finished.status === 0) return finished.milliseconds;
  const reason =
    finished.status === null ? `ended after ${Math.round(finished.milliseconds)} ms` : `status ${finished.status}`;
  process.stderr.write(`  ${argv.join(' ')}: ${reason}: ${finished.stderr.trim().split('\n')[0] ?? ''}\n`);
  return null;
}
