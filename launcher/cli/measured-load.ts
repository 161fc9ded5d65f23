/** The load of `ncclrun doctor --full`: collectives over halves of the hosts, over the GPUs of each, and between every two of its GPUs. */
import { join } from 'node:path';
import type { Finding, ReadHost } from '../doctor/finding.ts';
import { gpuLoadFindings, pairRounds, type GpuRate } from '../doctor/gpu-load.ts';
import { halvesFindings, type GroupRate } from '../doctor/halves.ts';
import { installationRoot, perfPath } from '../local/host.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';
import type { JobResult, Reporter } from '../model/types.ts';
import { failureText } from '../report/failure-text.ts';
import { MeasuredLines } from '../report/measured-lines.ts';
import { isRow, parsePerfLine, type PerfRow } from '../report/perf-rows.ts';
import type { DoctorJobs, RunOptions } from './doctor-jobs.ts';

/** Enough for full bandwidth; what processors carry takes far longer. */
const GPU_BYTES = 2 ** 28;
const HOST_BYTES = 2 ** 24;
const GPU_SLOWER = 0.8;
/** What else a processor does shows in its rate. */
const HOST_SLOWER = 0.5;
const LIMIT_SECONDS = 60;
/** Of a GPU's memory: with less somebody works on it. */
const MIN_FREE_PART = 0.9;

interface LoadHost {
  readonly name: string;
  readonly gpus: number;
  readonly kind: string;
}

export async function loadFindings(jobs: DoctorJobs, read: readonly ReadHost[]): Promise<Finding[]> {
  const busy = read.filter(isBusy).map(({ name }) => name);
  const hosts = read.filter(({ name }) => !busy.includes(name)).map(loadHost);
  const rates = (await Promise.all(hosts.filter(({ gpus }) => gpus > 1).map((host) => gpuRates(jobs, host)))).flat();
  const ranksPerHost = Math.min(...hosts.map(({ gpus }) => gpus));
  const device = ranksPerHost > 0 && Number.isFinite(ranksPerHost) ? 'cuda' : 'host';
  const measure = (groups: readonly (readonly string[])[]) =>
    Promise.all(groups.map((group) => groupRate(jobs, group, device, Math.max(1, ranksPerHost))));
  const names = hosts.map(({ name }) => name);
  return [
    ...busy.map(busyFinding),
    ...gpuLoadFindings(rates),
    ...(await halvesFindings(names, device === 'cuda' ? GPU_SLOWER : HOST_SLOWER, measure)),
  ];
}

function loadHost({ name, readings: { gpus } }: ReadHost): LoadHost {
  const models = [...new Set((gpus.devices ?? []).map((gpu) => gpu.name))].toSorted();
  const count = gpus.devices?.length ?? 0;
  return { name, gpus: count, kind: `${count} ${models.join(', ')}` };
}

function isBusy({ readings: { gpus } }: ReadHost): boolean {
  return (gpus.devices ?? []).some(
    ({ processes, freeBytes, totalBytes }) =>
      processes.length > 0 || (freeBytes !== null && totalBytes !== null && freeBytes < MIN_FREE_PART * totalBytes),
  );
}

function busyFinding(host: string): Finding {
  const message = 'somebody works on its GPUs, so no load was put on them';
  return {
    check: 'gpu.bandwidth',
    answer: 'note',
    host,
    subject: '',
    message,
    remedy: 'run doctor --full when they are idle',
  };
}

/** All GPUs together first, then every two. */
async function gpuRates(jobs: DoctorJobs, { name, gpus, kind }: LoadHost): Promise<GpuRate[]> {
  const indices = Array.from({ length: gpus }, (_, index) => index);
  const predicted = await predictedRate(jobs, name, gpus);
  const all = await measured(jobs, [name], 'all_reduce', 'cuda', GPU_BYTES, { ranksPerHost: gpus });
  const rates: GpuRate[] = [{ host: name, kind, gpus: indices, all: true, predicted, ...all }];
  for (const round of pairRounds(gpus)) {
    const pairs = round.map(async (pair): Promise<GpuRate> => {
      const exports = [`CUDA_VISIBLE_DEVICES=${pair.join(',')}`];
      const found = await measured(jobs, [name], 'sendrecv', 'cuda', GPU_BYTES, { ranksPerHost: 2, exports });
      return { host: name, kind, gpus: pair, all: false, predicted: null, ...found };
    });
    rates.push(...(await Promise.all(pairs)));
  }
  return rates;
}

async function groupRate(
  jobs: DoctorJobs,
  hosts: readonly string[],
  device: 'cuda' | 'host',
  ranksPerHost: number,
): Promise<GroupRate> {
  const bytes = device === 'cuda' ? GPU_BYTES : HOST_BYTES;
  return { hosts, ...(await measured(jobs, hosts, 'all_reduce', device, bytes, { ranksPerHost })) };
}

/** What the planner of that host expects of its GPUs. */
async function predictedRate(jobs: DoctorJobs, host: string, gpus: number): Promise<number | null> {
  const output = new Output();
  const command = [join(installationRoot, 'bin', 'ncclrun'), 'plan', '--json', '--ranks', `${gpus}`];
  await jobs.run([host], [...command, '--bytes', `${GPU_BYTES}`], output);
  const [, rate] = /"predictedBusBw":\s*([\d.]+)/u.exec(output.text()) ?? [];
  return rate === undefined ? null : Number(rate);
}

async function measured(
  jobs: DoctorJobs,
  hosts: readonly string[],
  collective: string,
  device: 'cuda' | 'host',
  bytes: number,
  options: RunOptions,
): Promise<Pick<GpuRate, 'rate' | 'wrong' | 'error'>> {
  const output = new Output();
  const size = `${bytes}`;
  const words = ['--begin', size, '--end', size, '--factor', '2', '--iters', '10', '--warmup', '3', '--blocking', '0'];
  const rest = ['--check', '1', '--root', '0', '--type', 'float', '--op', 'sum', '--device', device];
  await jobs.run(hosts, [perfPath, collective, ...words, ...rest], output, { ...options, limitSeconds: LIMIT_SECONDS });
  const [failure] = output.ended?.failures ?? [];
  if (failure !== undefined || output.rows.length === 0) {
    return { rate: null, wrong: 0, error: failure === undefined ? 'nothing was measured' : errorText(failure) };
  }
  const wrong = output.rows.reduce((sum, row) => sum + (row.wrong ?? 0), 0);
  return { rate: Math.max(...output.rows.map(({ busbw }) => busbw)), wrong, error: null };
}

/** With the last line that the program has said of it. */
function errorText(failure: Failure): string {
  const { sentence, details } = failureText(failure);
  return [sentence, ...details.slice(-1)].map((text) => text.trim()).join(': ');
}

/** Of rank 0's stdout. */
class Output implements Reporter {
  readonly rows: PerfRow[] = [];
  readonly #chunks: Uint8Array[] = [];
  readonly #measured = new MeasuredLines(parsePerfLine);
  ended: JobResult | null = null;

  text(): string {
    return Buffer.concat(this.#chunks).toString('utf8');
  }

  event(_event: JobEvent): void {
    // The result says what has failed.
  }

  async output(chunk: OutputChunk): Promise<void> {
    if (chunk.stream === 'stdout') this.#chunks.push(Uint8Array.from(chunk.bytes));
    for (const line of this.#measured.take(chunk)?.lines ?? []) if (isRow(line)) this.rows.push(line);
  }

  async result(result: JobResult): Promise<void> {
    this.ended = result;
  }
}
