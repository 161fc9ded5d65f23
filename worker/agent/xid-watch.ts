/** Looks for errors of the GPUs that a job's ranks on this host have: in the kernel's log, or where that may not be read at NVML. */
import { readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { monotonicMs } from '../../control/clock.ts';
import type { HostGpu, Xid } from '../../control/messages/gpu.ts';
import { allGpus } from '../topology/gpus.ts';
import { sysfsAddress } from '../topology/walk.ts';
import { findAncestor } from './process-tree.ts';
import type { XidLine } from './xid.ts';
import { openXidSource, type XidNative, type XidSource } from './xid-source.ts';

const LOOK_MS = 250;
/** A broken GPU may write thousands. */
const MAX_REPORTED = 64;
/** Of the machine itself, not of a container: there the kernel's pids are not ours (Linux, PROC_PID_INIT_INO). */
const MACHINE_PIDS = 'pid:[4026531836]';

interface XidWatchOptions {
  readonly native: XidNative;
  /** Each rank's own. */
  readonly gpus: ReadonlyMap<number, HostGpu>;
  readonly report: (xid: Xid) => void;
  /** For tests: the root of the file system. */
  readonly root?: string;
}

/** Null: there is nothing to watch. */
export function watchXids(options: XidWatchOptions): XidWatch | null {
  return options.gpus.size === 0 ? null : new XidWatch(options);
}

export class XidWatch {
  readonly #source: XidSource;
  readonly #options: XidWatchOptions;
  /** Addresses of all GPUs. */
  readonly #all: readonly (string | null)[];
  readonly #knowsPids: boolean;
  /** Rank by process. */
  readonly #pids = new Map<number, number>();
  /** GPU, code and process of what has been reported. */
  readonly #reported = new Set<string>();
  readonly #timer: NodeJS.Timeout;
  #lookedAt = Date.now();

  constructor(options: XidWatchOptions) {
    const { root = '/' } = options;
    this.#options = options;
    this.#all = allGpus(root).map((address) => (address === null ? null : sysfsAddress(address)));
    this.#knowsPids = pidNamespace(root) === MACHINE_PIDS;
    this.#source = openXidSource(options.native);
    this.#timer = setInterval(() => this.look(), LOOK_MS);
    this.#timer.unref();
  }

  spawned(rank: number, pid: number): void {
    this.#pids.set(pid, rank);
  }

  /** Tells what is new. */
  look(): void {
    const news = this.#source.take();
    const before = this.#lookedAt;
    this.#lookedAt = Date.now();
    for (const { line, sinceBootMs } of news) this.#found(line, timeOf(sinceBootMs, before, this.#lookedAt));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#source.close();
  }

  #found(line: XidLine, time: number): void {
    const { code, pid, message } = line;
    const gpu = this.#all.findIndex((one) => one?.startsWith(`${line.address}.`) === true);
    const address = this.#all[gpu];
    const ranks = this.#ranksOf(line, gpu);
    const key = `${line.address} ${code} ${pid}`;
    if (
      typeof address !== 'string' ||
      ranks.length === 0 ||
      this.#reported.has(key) ||
      this.#reported.size >= MAX_REPORTED
    )
      return;
    this.#reported.add(key);
    this.#options.report({ code, gpu, address, ranks, pid, message, time });
  }

  #ranksOf({ pid }: XidLine, index: number): number[] {
    const process = pid === null || !this.#knowsPids ? null : findAncestor(pid, this.#pids);
    const rank = process === null ? undefined : this.#pids.get(process);
    if (rank !== undefined) return [rank];
    return Array.from(this.#options.gpus).flatMap(([one, gpu]) => (gpu.index === index ? [one] : []));
  }
}

/** The log's clock goes a little wrong in the long run; but a record came between two looks. */
function timeOf(sinceBootMs: number | null, earliest: number, latest: number): number {
  if (sinceBootMs === null) return latest;
  const guess = Math.round(Date.now() - (monotonicMs() - sinceBootMs));
  return Math.min(Math.max(guess, earliest), latest);
}

function pidNamespace(root: string): string {
  try {
    return readlinkSync(join(root, 'proc/self/ns/pid'));
  } catch {
    return '';
  }
}
