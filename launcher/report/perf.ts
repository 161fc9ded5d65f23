/** The reporter of `ncclrun perf`: rank 0's stdout is the measurement, everything else is told as in any job. */
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { JobResult, RankMap, Reporter } from '../model/types.ts';
import { MeasuredLines } from './measured-lines.ts';
import { isRow, parsePerfLine, type PerfHead, type PerfRow } from './perf-rows.ts';
import { tableFoot, tableHead, tableRow, wrongElements } from './perf-table.ts';
import type { Writer } from './writer.ts';

/** True whenever `auto` does not choose GPUs. */
const HOST_MEMORY =
  '# host memory is measured, not GPUs: a host has more ranks than usable GPUs (--device cuda says why)\n';

export class PerfReporter implements Reporter {
  readonly #inner: Reporter;
  readonly #stdout: Writer;
  readonly #json: boolean;
  readonly #isDeviceGiven: boolean;
  readonly #measured = new MeasuredLines(parsePerfLine);
  #head: PerfHead | null = null;
  #outOfPlace: PerfRow | null = null;
  readonly rows: PerfRow[] = [];

  /**
   * `inner` gets all that is not a measurement; with `json` one document is printed at the end instead of the table. `isDeviceGiven`: nobody needs
   * to be told where the buffers are.
   */
  constructor(inner: Reporter, stdout: Writer, json: boolean, isDeviceGiven = true) {
    this.#inner = inner;
    this.#stdout = stdout;
    this.#json = json;
    this.#isDeviceGiven = isDeviceGiven;
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
    else await this.#print(tableRow(this.#outOfPlace, null) + tableFoot(this.rows));
    await this.#inner.result(result);
  }

  /** What the table gains. */
  #take(measured: PerfHead | PerfRow): string {
    if (!isRow(measured)) {
      this.#head = measured;
      const isUnexpected = measured.device === 'host' && !this.#isDeviceGiven;
      return `${isUnexpected ? HOST_MEMORY : ''}${tableHead(measured)}`;
    }
    this.rows.push(measured);
    return this.#tableRows(measured);
  }

  /** Out of place comes first; with its partner in place it makes one line of the table. */
  #tableRows(row: PerfRow): string {
    const waiting = this.#outOfPlace;
    if (row.inPlace) {
      this.#outOfPlace = null;
      if (waiting === null || areAlike(waiting, row)) return tableRow(waiting, row);
      return tableRow(waiting, null) + tableRow(null, row);
    }
    this.#outOfPlace = row;
    return tableRow(waiting, null);
  }

  async #print(text: string): Promise<void> {
    if (!this.#json && text !== '') await this.#stdout.print(text);
  }

  /** Wrong elements are a failure of a job that ended well. */
  verdict({ ok, reason, exitCode }: JobResult) {
    const wrong = ok && (wrongElements(this.rows) ?? 0) > 0;
    return wrong ? { ok: false, reason: 'wrong-elements', exitCode: 1 } : { ok, reason, exitCode };
  }

  #document(result: JobResult) {
    const { jobId, failures } = result;
    const { ok, reason, exitCode } = this.verdict(result);
    const head = this.#head ?? {
      collective: null,
      device: null,
      ranks: result.ranks.length,
      hosts: result.hosts.length,
    };
    const { collective, device, ranks, hosts } = head;
    return {
      schemaVersion: 1,
      collective,
      device,
      ranks,
      hosts,
      rows: this.rows,
      jobId,
      ok,
      reason,
      exitCode,
      failures,
    };
  }
}

function areAlike(one: PerfRow, other: PerfRow): boolean {
  return one.bytes === other.bytes && one.type === other.type && one.op === other.op;
}
