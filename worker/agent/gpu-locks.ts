/**
 * Holds the GPUs of a job's ranks among all jobs on this host: by names in the abstract namespace of Unix sockets, which the kernel gives to one
 * process and frees when that process ends. So a lock has no file that anybody could replace, or forget.
 *
 *   ncclrun-gpu/UUID        the first job on the GPU
 *   ncclrun-gpu/UUID/JOB    each job on it, so that the one that comes next knows of those that share it
 *
 * A job that shares shows its own name first and looks for others then. A job that does not share takes the GPU's name first, shows its own, and looks
 * for others then. So of two that start at once at least one sees the other, and of two that do not share one gets the GPU.
 */
import type { BusyGpu } from '../../control/messages/gpu.ts';
import type { AgentOrder } from '../../control/messages/link.ts';
import type { Native, NativeHandle } from '../engine/native.ts';
import { gpuUuid, type VisibleGpu, visibleGpus } from '../topology/gpus.ts';
import { readText } from '../topology/system-files.ts';
import { userName } from './gpu-memory.ts';

const PREFIX = 'ncclrun-gpu';
/** The first job shows its own name at once after it took the GPU's. */
const LOOKS = 10;

type LockNative = Pick<Native, 'nameHold' | 'nameHolder' | 'close'>;
type LockOrder = Pick<AgentOrder, 'jobId' | 'outerJob' | 'busyGpus'>;

/** A job's locks in this process. An agent that follows another one of the same job finds them held. */
let current: { readonly jobId: string; readonly locks: GpuLocks } | null = null;

export function gpuLocksOf(native: LockNative, order: LockOrder): GpuLocks {
  if (current?.jobId !== order.jobId) {
    current?.locks.release();
    current = { jobId: order.jobId, locks: new GpuLocks(native, order) };
  }
  return current.locks;
}

export class GpuLocks {
  readonly #native: LockNative;
  readonly #order: LockOrder;
  readonly #own: ReadonlySet<string>;
  /** By GPU: what holds its names. */
  readonly #held = new Map<string, readonly NativeHandle[]>();

  constructor(native: LockNative, order: LockOrder) {
    this.#native = native;
    this.#order = order;
    this.#own = new Set([order.jobId, ...(order.outerJob === null ? [] : [order.outerJob])]);
  }

  /** Holds these GPUs and no others. Returns those of them that other jobs hold; a job that does not share then holds none. */
  take(gpus: readonly VisibleGpu[]): readonly BusyGpu[] {
    const wanted = new Map(gpus.flatMap((gpu) => keyOf(gpu).map((key) => [key, gpu] as const)));
    for (const key of this.#held.keys()) if (!wanted.has(key)) this.#drop(key);
    const busy = [...wanted].flatMap(([key, gpu]) => (this.#held.has(key) ? [] : this.#takeOne(key, gpu)));
    if (busy.length > 0 && this.#order.busyGpus === 'refuse') this.release();
    return busy;
  }

  release(): void {
    for (const key of this.#held.keys()) this.#drop(key);
  }

  #takeOne(key: string, gpu: VisibleGpu): readonly BusyGpu[] {
    const others = this.#order.busyGpus === 'refuse' ? this.#takeAlone(key) : this.#takeShared(key);
    return others === null ? [] : [this.#busy(key, gpu, others)];
  }

  /** The other jobs on the GPU; empty where no job of ours holds it, null where nobody does. */
  #takeShared(key: string): readonly string[] | null {
    const own = this.#hold(`${key}/${this.#order.jobId}`);
    const first = this.#hold(key);
    this.#held.set(key, [...own, ...first]);
    const { all, others } = this.#jobsOn(key);
    return others.length > 0 || (first.length === 0 && all.length === 0) ? others : null;
  }

  /** Likewise. */
  #takeAlone(key: string): readonly string[] | null {
    for (let look = 0; look < LOOKS; look += 1) {
      const first = this.#hold(key);
      const { all, others } = this.#jobsOn(key);
      const isOurs = first.length > 0 || all.length > 0;
      if (!isOurs) continue;
      if (others.length > 0) {
        for (const handle of first) this.#native.close(handle);
        return others;
      }
      this.#held.set(key, [...first, ...this.#hold(`${key}/${this.#order.jobId}`)]);
      const { others: since } = this.#jobsOn(key);
      if (since.length === 0) return null;
      this.#drop(key);
      return since;
    }
    return [];
  }

  /** Nothing: another process holds the name. */
  #hold(key: string): readonly NativeHandle[] {
    const handle = this.#native.nameHold(`${PREFIX}/${key}`);
    return handle === null ? [] : [handle];
  }

  #drop(key: string): void {
    for (const handle of this.#held.get(key) ?? []) this.#native.close(handle);
    this.#held.delete(key);
  }

  #jobsOn(key: string): { readonly all: readonly string[]; readonly others: readonly string[] } {
    const all = jobsIn(readText('/', 'proc/net/unix'), key);
    return { all, others: all.filter((job) => !this.#own.has(job)) };
  }

  #busy(key: string, { index, name, address }: VisibleGpu, [job]: readonly string[]): BusyGpu {
    const holder = this.#native.nameHolder(`${PREFIX}/${key}${job === undefined ? '' : `/${job}`}`);
    return {
      index,
      slot: slotOf(name, index),
      uuid: index === null ? name : gpuUuid(address),
      job: job ?? null,
      pid: holder === null || holder.pid === 0 ? null : holder.pid,
      user: holder === null ? null : userName(String(holder.uid)),
    };
  }
}

/** The part of the names that is the GPU's; none where the system does not say which GPU it is. */
function keyOf({ index, name, address }: VisibleGpu): readonly string[] {
  const id = index === null ? (name.startsWith('MIG-') ? name : null) : (gpuUuid(address) ?? address);
  return id === null ? [] : [id.replaceAll(/[^\w.:-]/gu, '.').slice(0, 64)];
}

function slotOf(name: string, index: number | null): number | null {
  const slot = visibleGpus().findIndex((one) => (index === null ? one.name === name : one.index === index));
  return slot === -1 ? null : slot;
}

/** Jobs that show their names on a GPU. `sockets`: /proc/net/unix. */
function jobsIn(sockets: string, key: string): readonly string[] {
  const start = `@${PREFIX}/${key}/`;
  const names = sockets.split('\n').map((line) => line.slice(line.lastIndexOf(' ') + 1));
  return [...new Set(names.filter((name) => name.startsWith(start)).map((name) => name.slice(start.length)))];
}
