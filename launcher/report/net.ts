/** The reporter of `ncclrun perf net`: rank 0's stdout is the measurement, everything else is told as in any job. */
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobResult, RankMap, Reporter } from '../model/types.ts';
import { MeasuredLines } from './measured-lines.ts';
import { mediansOf, slownessOf } from './net-medians.ts';
import type { NetMedians } from './net-medians.ts';
import { isMeasured, parseNetLine } from './net-rows.ts';
import type { NetHost, NetNetwork, NetPair } from './net-rows.ts';
import { netFoot, netHead, netRow } from './net-table.ts';
import type { NetRun } from './net-table.ts';
import type { Writer } from './writer.ts';

export class NetReporter implements Reporter {
  readonly #inner: Reporter;
  readonly #stdout: Writer;
  readonly #json: boolean;
  readonly #sizes: readonly string[];
  readonly #measured = new MeasuredLines(parseNetLine);
  #network: string | null = null;
  readonly #hosts: NetHost[] = [];
  readonly #pairs: NetPair[] = [];

  /** `sizes` as the user wrote them; `inner` gets all that is not a measurement; with `json` one document is printed at the end. */
  constructor(inner: Reporter, stdout: Writer, json: boolean, sizes: readonly string[]) {
    this.#inner = inner;
    this.#stdout = stdout;
    this.#json = json;
    this.#sizes = sizes;
  }

  async prepare(map: RankMap): Promise<void> {
    await this.#inner.prepare?.(map);
  }

  event(event: JobEvent): void {
    this.#inner.event(event);
  }

  async output(chunk: OutputChunk): Promise<void> {
    const taken = this.#measured.take(chunk);
    if (taken === null) return this.#inner.output(chunk);
    // Every line is taken before the first wait: the next chunk may come while this one is printed.
    await this.#print(taken.lines.map((line) => this.#take(line)).join(''));
    if (taken.others !== null) await this.#inner.output(taken.others);
  }

  async result(result: JobResult): Promise<void> {
    if (this.#json) await this.#stdout.print(`${JSON.stringify(this.#document(result))}\n`);
    else if (this.#pairs.length > 0) await this.#print(netFoot(this.#pairs, this.#run()));
    await this.#inner.result(result);
  }

  /** A pair that failed is a failure of a job that ended well. */
  verdict({ ok, reason, exitCode }: JobResult) {
    const failed = ok && this.#pairs.some((pair) => !isMeasured(pair));
    return failed ? { ok: false, reason: 'failed-pairs', exitCode: 1 } : { ok, reason, exitCode };
  }

  /** What the table gains. */
  #take(line: NetNetwork | NetHost | NetPair): string {
    if ('network' in line) this.#network = line.network;
    else if ('host' in line) this.#hosts.push(line);
    else {
      this.#pairs.push(line);
      return (this.#pairs.length === 1 ? netHead(this.#run()) : '') + netRow(line, this.#run());
    }
    return '';
  }

  #run(): NetRun {
    return { network: this.#network ?? '', hosts: this.#hosts, sizes: this.#sizes };
  }

  async #print(text: string): Promise<void> {
    if (!this.#json && text !== '') await this.#stdout.print(text);
  }

  #document(result: JobResult) {
    const medians = mediansOf(this.#pairs);
    return {
      schemaVersion: 1,
      network: this.#network,
      sizes: this.#sizes,
      hosts: this.#hosts.map(({ name, nics }) => ({ name, nics })),
      pairs: this.#pairs.map((pair) => pairObject(pair, medians)),
      medians,
      jobId: result.jobId,
      ...this.verdict(result),
      failures: result.failures,
    };
  }
}

function pairObject(pair: NetPair, medians: NetMedians | null) {
  const { from, fromNic, to, toNic } = pair;
  const ends = { from: { host: from, nic: fromNic }, to: { host: to, nic: toNic } };
  if (!isMeasured(pair) || medians === null)
    return {
      ...ends,
      latencyUs: null,
      latency99Us: null,
      gigabytes: null,
      retransmits: null,
      sentBytes: null,
      slow: null,
      error: pair.error,
    };
  const { latencyUs, latency99Us, gigabytes, sentBytes } = pair;
  const retransmits = pair.retransmits < 0 ? null : pair.retransmits;
  return {
    ...ends,
    latencyUs,
    latency99Us,
    gigabytes,
    retransmits,
    sentBytes,
    slow: slownessOf(pair, medians),
    error: null,
  };
}
