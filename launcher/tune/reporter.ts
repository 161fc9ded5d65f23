/** The reporter of `ncclrun tune`: rank 0's stdout is the measurement, it reports everything else as for any job. */
import { printable } from '../../control/printable.ts';
import { usageError } from '../model/usage-error.ts';
import type { JobEvent, OutputChunk } from '../model/event.ts';
import type { Failure } from '../model/failure.ts';
import { exitStatus, FailureError } from '../model/failure-error.ts';
import type { JobResult, RankMap, Reporter } from '../model/types.ts';
import { MeasuredLines } from '../report/measured-lines.ts';
import type { Writer } from '../report/writer.ts';
import { isTuneLoad, isTuneRow, parseTuneLine } from './lines.ts';
import type { MachineLoad, TuneHead, TuneRow } from './lines.ts';
import { loadRemark, refuseLoad } from './load.ts';
import { repeatable } from './repeatable.ts';
import { tuneFoot, tuneHead, tuneLine } from './text.ts';

type TuningEvent = Extract<JobEvent, { type: 'tuning' }>;

/** A stored table, and the note that the reporter prints about it. */
export interface Stored {
  readonly file: string;
  readonly note: string;
}

export interface TuneReporterOptions {
  /** Gets all that is not a measurement. */
  readonly inner: Reporter;
  readonly stdout: Writer;
  /** One document at the end instead of the table. */
  readonly json: boolean;
  /** Part of the median by which rounds may differ; what differs more is not stored. */
  readonly maxSpread: number;
  /** Part of a machine's processors that others may use; where they use more, nothing is stored, unless GPUs were measured. */
  readonly maxLoad: number;
  /** Called once, if all has been measured. `isHere`: the tables are this machine's. Throws a FailureError. */
  store(rows: readonly TuneRow[], planned: TuningEvent, isHere: boolean): Stored;
}

export class TuneReporter implements Reporter {
  readonly #options: TuneReporterOptions;
  readonly #measured = new MeasuredLines(parseTuneLine);
  #head: TuneHead | null = null;
  #planned: TuningEvent | null = null;
  #isHere = true;
  #stored: Stored | null = null;
  #failure: Failure | null = null;
  /** Lines about how far rounds differed, and what others did meanwhile. */
  #noise = '';
  #load: readonly MachineLoad[] = [];
  readonly #bySize: TuneRow[][] = [];
  /** Of #bySize, that are printed. */
  #printed = 0;

  constructor(options: TuneReporterOptions) {
    this.#options = options;
  }

  async prepare(map: RankMap): Promise<void> {
    const [host, other] = map.hosts;
    if (map.ranks.length < 2) throw usageError('one rank has nobody to talk to', 'give at least two: -n 2');
    // The launcher plans what lies on several hosts, and looks in its own tables.
    this.#isHere = other !== undefined || (host?.local ?? true);
    await this.#options.inner.prepare?.(map);
  }

  event(event: JobEvent): void {
    if (event.type === 'tuning') this.#planned ??= event;
    this.#options.inner.event(event);
  }

  async output(chunk: OutputChunk): Promise<void> {
    const taken = this.#measured.take(chunk);
    if (taken === null) return this.#options.inner.output(chunk);
    for (const line of taken.lines) this.#take(line);
    // The rows of a size come together; those of the last one may go on.
    await this.#print(this.#bySize.length - 1);
    if (taken.others !== null) await this.#options.inner.output(taken.others);
  }

  async result(result: JobResult): Promise<void> {
    await this.#print(this.#bySize.length);
    if (result.ok) this.#store();
    const { json, stdout, inner } = this.#options;
    const stored = this.#stored;
    const verdict = this.verdict(result);
    if (json) await stdout.print(`${JSON.stringify(this.#document(verdict))}\n`);
    else if (stored !== null)
      await stdout.print(`${tuneFoot(this.#bySize)}${this.#noise}# ${printable(stored.note)}\n`);
    await inner.result(verdict);
  }

  /** A table that could not be stored is a failure of a job that ended well. */
  verdict(result: JobResult): JobResult {
    if (this.#failure === null) return result;
    const { type } = this.#failure;
    const failures = [...result.failures, this.#failure];
    return { ...result, ok: false, reason: type, exitCode: exitStatus(this.#failure), failures };
  }

  #store(): void {
    if (this.#bySize.length === 0 || this.#planned === null) return;
    try {
      if (this.#head?.device !== 'cuda') refuseLoad(this.#load, this.#options.maxLoad);
      const { kept, remark } = repeatable(this.#bySize, this.#options.maxSpread);
      const remarks = [remark, loadRemark(this.#load)].filter((one) => one !== null);
      this.#noise = remarks.map((one) => `# ${printable(one)}\n`).join('');
      this.#stored = this.#options.store(kept, this.#planned, this.#isHere);
    } catch (error) {
      if (!(error instanceof FailureError)) throw error;
      this.#failure = error.failure;
      this.#options.inner.event({ type: 'failure', time: Date.now(), failure: error.failure, primary: true });
    }
  }

  #take(line: NonNullable<ReturnType<typeof parseTuneLine>>): void {
    if (isTuneLoad(line)) {
      this.#load = line.load;
      return;
    }
    if (!isTuneRow(line)) {
      this.#head = line;
      return;
    }
    const current = this.#bySize.at(-1);
    const [first] = current ?? [];
    if (current === undefined || first?.bytes !== line.bytes || first.collective !== line.collective)
      this.#bySize.push([line]);
    else current.push(line);
  }

  /** Sizes up to this one. */
  async #print(count: number): Promise<void> {
    if (this.#options.json || count <= this.#printed) return;
    const head = this.#printed === 0 && this.#head !== null ? tuneHead(this.#head) : '';
    const lines = this.#bySize.slice(this.#printed, count).map(tuneLine);
    this.#printed = count;
    await this.#options.stdout.print(head + lines.join(''));
  }

  #document({ jobId, ok, reason, exitCode, failures, ranks, hosts }: JobResult) {
    const head = this.#head ?? { device: null, ranks: ranks.length, hosts: hosts.length };
    const rows = this.#bySize.flat();
    const file = this.#stored?.file ?? null;
    return { schemaVersion: 1, ...head, file, rows, load: this.#load, jobId, ok, reason, exitCode, failures };
  }
}
