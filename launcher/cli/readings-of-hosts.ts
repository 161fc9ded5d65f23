/** Runs `ncclrun doctor --readings` on hosts, each as a job of one rank, so every remote shell works, and one host in trouble holds up no other. */
import { join } from 'node:path';
import * as v from 'valibot';
import { hostCounters, hostReadings } from '../../control/readings.ts';
import type { CountedHost, ReadHost } from '../doctor/finding.ts';
import { installationRoot } from '../local/host.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';
import type { JobResult, Reporter } from '../model/types.ts';
import { Limiter } from '../remote/shell/limiter.ts';
import { failureText } from '../report/failure-text.ts';
import type { DoctorJobs, RunOptions } from './doctor-jobs.ts';

/** Hosts that are asked at once. */
const AT_ONCE = 32;

const commandOf = (words: readonly string[]): string[] => [
  join(installationRoot, 'bin', 'ncclrun'),
  'doctor',
  ...words,
];

export interface AskedHost {
  readonly name: string;
  /** Null: `failure` says why. */
  readonly read: ReadHost | null;
  readonly failure: { readonly message: string; readonly remedy: string } | null;
  /** Until its agent had started; null: it never did. */
  readonly startMs: number | null;
  /** By which its clock is ahead of ours at least; negative: behind. 0: not by more than the answer took. */
  readonly clockAheadMs: number;
  /** Connections that its sshd dropped before the login, and that were made again. */
  readonly dropped: number;
}

/** `words`: options of `ncclrun doctor --readings`. */
export async function readingsOf(
  jobs: DoctorJobs,
  hosts: readonly string[],
  words: readonly string[],
): Promise<AskedHost[]> {
  const limiter = new Limiter(AT_ONCE);
  const readingsOfOne = async (name: string) => {
    const answer = new Answer(Date.now());
    await jobs.run([name], commandOf(['--readings', ...words]), answer);
    return askedHost(name, answer, answer.ended?.failures ?? []);
  };
  return await Promise.all(hosts.map((name) => limiter.within(() => readingsOfOne(name))));
}

/** By one job, which does not start while a host is not up. Returns why there are no readings. */
export async function readingsTogether(
  jobs: DoctorJobs,
  hosts: readonly string[],
  words: readonly string[],
): Promise<AskedHost[] | Failure> {
  const answers = new Answers();
  await jobs.run(hosts, commandOf(['--readings', ...words]), answers);
  const failures = answers.ended?.failures ?? [];
  const [first] = failures;
  if (first !== undefined && first.type !== 'rank-exit') return first;
  return hosts.map((name) => {
    const own = failures.filter((failure) => failure.type === 'rank-exit' && failure.host === name);
    return askedHost(name, answers.of(name), own);
  });
}

/** What the process of each host printed as JSON, all of them at the same time; null: nothing. */
export async function answersTogether(
  jobs: DoctorJobs,
  hosts: readonly string[],
  words: readonly string[],
  options: RunOptions,
): Promise<{ readonly name: string; readonly answer: unknown }[]> {
  const answers = new Answers();
  await jobs.run(hosts, commandOf(words), answers, options);
  return hosts.map((name) => ({ name, answer: jsonOf(answers.of(name).text()) }));
}

/** What may have grown under load; a host that does not answer is left out. */
export async function countersOf(jobs: DoctorJobs, hosts: readonly string[]): Promise<CountedHost[]> {
  const limiter = new Limiter(AT_ONCE);
  const ofOne = async (name: string): Promise<CountedHost[]> => {
    const answer = new Answer(Date.now());
    await jobs.run([name], commandOf(['--readings=counters']), answer);
    const parsed = v.safeParse(hostCounters, jsonOf(answer.text()));
    return parsed.success ? [{ name, counters: parsed.output }] : [];
  };
  return (await Promise.all(hosts.map((name) => limiter.within(() => ofOne(name))))).flat();
}

function askedHost(name: string, answer: Answer, failures: readonly Failure[]): AskedHost {
  const { asked } = answer;
  const answered = answer.answeredAt ?? Date.now();
  const parsed = v.safeParse(hostReadings, jsonOf(answer.text()));
  const startMs = answer.startedAt === null ? null : answer.startedAt - asked;
  const common = { name, startMs, dropped: answer.dropped };
  if (!parsed.success) return { ...common, read: null, failure: failureIn(failures, answer.said()), clockAheadMs: 0 };
  const { now } = parsed.output.clock;
  const clockAheadMs = now > answered ? now - answered : Math.min(0, now - asked);
  return { ...common, read: { name, readings: parsed.output }, failure: null, clockAheadMs };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function failureIn(failures: readonly Failure[], said: string): { message: string; remedy: string } {
  const [first] = failures;
  if (first === undefined)
    return { message: 'it has answered what is no reading', remedy: 'see whether its ncclrun is another version' };
  const { sentence, details, remedy } = failureText(first);
  const message = [sentence, ...details, said].filter((part) => part !== '').join('; ');
  return { message, remedy: remedy ?? 'see what ncclrun -v -H HOST true says' };
}

/** Collects the rank's stdout, and remembers when what came. */
class Answer implements Reporter {
  readonly #chunks: Uint8Array[] = [];
  readonly #errors: Uint8Array[] = [];
  readonly asked: number;
  #attempts = 1;
  #wasStaged = false;
  startedAt: number | null = null;
  answeredAt: number | null = null;
  ended: JobResult | null = null;

  constructor(asked: number) {
    this.asked = asked;
  }

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  /** The last line of stderr. */
  said(): string {
    return Buffer.concat(this.#errors).toString('utf8').trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  }

  event(event: JobEvent): void {
    if (event.type === 'host-up') this.startedAt ??= Date.now();
    if (event.type === 'host-staging') this.#wasStaged = true;
    const attempt = event.type === 'host-step' ? /^connecting, attempt (\d+)$/u.exec(event.step)?.[1] : undefined;
    if (attempt !== undefined) this.#attempts = Number(attempt);
  }

  /** A host whose copy of ncclrun is damaged is connected to once more for another: no fault of its sshd. */
  get dropped(): number {
    return this.#wasStaged ? 0 : this.#attempts - 1;
  }

  async output({ stream, bytes }: OutputChunk): Promise<void> {
    if (stream === 'stdout') this.answeredAt = Date.now();
    (stream === 'stdout' ? this.#chunks : this.#errors).push(Uint8Array.from(bytes));
  }

  async result(result: JobResult): Promise<void> {
    this.ended = result;
  }
}

/** Of several hosts, one rank on each. */
class Answers implements Reporter {
  readonly #asked = Date.now();
  readonly #byHost = new Map<string, Answer>();
  ended: JobResult | null = null;

  of(host: string): Answer {
    const known = this.#byHost.get(host) ?? new Answer(this.#asked);
    this.#byHost.set(host, known);
    return known;
  }

  event(event: JobEvent): void {
    if (event.type === 'host-up' || event.type === 'host-staging' || event.type === 'host-step')
      this.of(event.host).event(event);
  }

  output(chunk: OutputChunk): Promise<void> {
    return this.of(chunk.host).output(chunk);
  }

  async result(result: JobResult): Promise<void> {
    this.ended = result;
  }
}
