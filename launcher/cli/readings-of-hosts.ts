/** Runs `ncclrun doctor --readings` on hosts, each as a job of one rank, so every remote shell works, and one host in trouble holds up no other. */
import { join } from 'node:path';
import * as v from 'valibot';
import { hostReadings } from '../../control/readings.ts';
import type { ReadHost } from '../doctor/finding.ts';
import { installationRoot } from '../local/host.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';
import type { HostSlots, JobRequest, JobResult, Reporter } from '../model/types.ts';
import { Limiter } from '../remote/shell/limiter.ts';
import { failureText } from '../report/failure-text.ts';
import { jobRequest } from './job-request.ts';
import { runReported } from './launch.ts';
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';

/** Hosts that are asked at once. */
const AT_ONCE = 32;
/** A host that has not answered by then is in trouble. */
const LIMIT_SECONDS = 30;

export interface AskedHost {
  readonly name: string;
  /** Null: `failure` says why. */
  readonly read: ReadHost | null;
  readonly failure: { readonly message: string; readonly remedy: string } | null;
  /** Until its agent had started; null: it never did. */
  readonly startMs: number | null;
  /** By which its clock is ahead of ours at least; negative: behind. 0: not by more than the answer took. */
  readonly clockAheadMs: number;
}

interface AskOptions {
  readonly settings: Settings<JobOptionName>;
  /** Options of `ncclrun doctor --readings`. */
  readonly words: readonly string[];
}

export async function readingsOf(hosts: readonly HostSlots[], options: AskOptions): Promise<AskedHost[]> {
  const limiter = new Limiter(AT_ONCE);
  return await Promise.all(hosts.map((host) => limiter.within(() => readingsOfOne(host, options))));
}

/** One rank on each of these hosts of the allocation, whose users and ports stay as they are. */
export function requestOfHosts(
  settings: Settings<JobOptionName>,
  hosts: readonly string[],
  command: readonly string[],
): JobRequest {
  const base = jobRequest(settings, command);
  const programs = base.programs.map((program) => ({ ...program, ranks: hosts.length, ranksPerHost: 1 }));
  const isNamed = base.hostfile !== null || base.hostList !== null || base.manager !== null;
  return {
    ...base,
    programs,
    include: isNamed ? hosts.join('@') : base.include,
    exclude: null,
    timeoutSeconds: LIMIT_SECONDS,
    hangAfterSeconds: 0,
    stdin: { type: 'none' },
    live: false,
  };
}

async function readingsOfOne({ name }: HostSlots, { settings, words }: AskOptions): Promise<AskedHost> {
  const command = [join(installationRoot, 'bin', 'ncclrun'), 'doctor', '--readings', ...words];
  const answer = new Answer();
  const asked = Date.now();
  await runReported(requestOfHosts(settings, [name], command), answer);
  const answered = answer.answeredAt ?? Date.now();
  const text = answer.text();
  const parsed = v.safeParse(hostReadings, jsonOf(text));
  const startMs = answer.startedAt === null ? null : answer.startedAt - asked;
  if (!parsed.success)
    return { name, read: null, failure: failureIn(answer.ended, answer.said()), startMs, clockAheadMs: 0 };
  const { now } = parsed.output.clock;
  const clockAheadMs = now > answered ? now - answered : Math.min(0, now - asked);
  return { name, read: { name, readings: parsed.output }, failure: null, startMs, clockAheadMs };
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function failureIn(result: JobResult | null, said: string): { message: string; remedy: string } {
  const [first]: readonly Failure[] = result?.failures ?? [];
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
  startedAt: number | null = null;
  answeredAt: number | null = null;
  ended: JobResult | null = null;

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  /** The last line of stderr. */
  said(): string {
    return Buffer.concat(this.#errors).toString('utf8').trim().split('\n').at(-1)?.slice(0, 300) ?? '';
  }

  event(event: JobEvent): void {
    if (event.type === 'host-up') this.startedAt ??= Date.now();
  }

  async output({ stream, bytes }: OutputChunk): Promise<void> {
    if (stream === 'stdout') this.answeredAt = Date.now();
    (stream === 'stdout' ? this.#chunks : this.#errors).push(Uint8Array.from(bytes));
  }

  async result(result: JobResult): Promise<void> {
    this.ended = result;
  }
}
