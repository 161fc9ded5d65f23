/** Holds and watches the GPUs of this host's ranks: their errors in the kernel's log, and their memory before ranks start. */
import type { GpuHealth } from '../../control/messages/host-health.ts';
import type { HostGpu } from '../../control/messages/gpu.ts';
import type { AgentOrder, AgentReport, Placement } from '../../control/messages/link.ts';
import type { Native } from '../engine/native.ts';
import { visibleGpus } from '../topology/gpus.ts';
import { GpuHealthReader } from './gpu-health.ts';
import { askNvml, memoryOf, type NvmlAnswer, withoutJob } from './gpu-memory.ts';
import { busyGpuText } from '../../control/busy-gpus-text.ts';
import { gpuLocksOf, type GpuLocks } from './gpu-locks.ts';
import { memoryIsBack } from './memory-wait.ts';
import { gpusOfRanks, lockedGpus } from './rank-gpus.ts';
import { type XidWatch, watchXids } from './xid-watch.ts';

/** NVML's answer before the first ranks of the latest job started. Global, because later attempts use new agents in the same process. */
const atFirst = new Map<string, Promise<NvmlAnswer>>();

interface RankGpuWatchOptions {
  readonly native: Native;
  readonly order: AgentOrder;
  readonly report: (report: AgentReport) => void;
}

export class RankGpuWatch {
  readonly #options: RankGpuWatchOptions;
  /** GPUs of this host; empty where there are none. */
  readonly #visible = visibleGpus();
  /** GPUs by rank. */
  #gpus: ReadonlyMap<number, HostGpu> = new Map();
  readonly #health: GpuHealthReader;
  readonly #locks: GpuLocks;
  #xids: XidWatch | null = null;
  #isStopped = false;

  /** Reports with the hello what other jobs hold, so that no host starts ranks, and queries NVML, which may be slow, while the hellos travel. */
  constructor(options: RankGpuWatchOptions) {
    this.#options = options;
    this.#health = new GpuHealthReader(options.native);
    const { native, order } = options;
    this.#locks = gpuLocksOf(native, order);
    if (order.placement !== null) this.take(order.placement, 0);
    if (order.epoch > 0 || this.#visible.length === 0) return;
    const device = order.placement?.programs[0]?.environment['NCCLRUN_DEVICE'] ?? process.env['NCCLRUN_DEVICE'];
    atFirst.clear();
    const answer = device === 'host' ? Promise.resolve([]) : askNvml(native);
    atFirst.set(
      order.jobId,
      answer.then((memories) => withoutJob(memories, order.jobId)),
    );
  }

  /** False, and the job ends: other jobs hold GPUs of these ranks. `before`: local ranks ahead of them. */
  take(placement: Placement, before: number): boolean {
    const { order, report } = this.#options;
    const busy = this.#locks.take(lockedGpus(placement, before, this.#visible));
    if (busy.length === 0) return true;
    if (order.busyGpus === 'refuse') report({ type: 'gpus-busy', gpus: busy });
    else if (order.busyGpus === 'report')
      for (const gpu of busy)
        report({ type: 'notice', message: `${busyGpuText(gpu)}, and this job uses it, too (--busy-gpus)` });
    return order.busyGpus !== 'refuse';
  }

  /** Before ranks start. Resolves when those of an attempt before have given their GPUs' memory back, or do not. */
  async ready(placement: Placement): Promise<void> {
    const { native, order, report } = this.#options;
    const gpus = Array.from(gpusOfRanks(placement, this.#visible, process.env).values());
    const first = atFirst.get(order.jobId);
    if (order.epoch === 0 || first === undefined || gpus.length === 0) return;
    await memoryIsBack({
      before: first.then((answer) => memoryOf(answer, gpus)),
      now: async () => memoryOf(await askNvml(native), gpus),
      isWanted: () => !this.#isStopped,
      report: (message) => report({ type: 'notice', message }),
    });
  }

  /** The ranks are about to start. */
  begin(placement: Placement): void {
    const { native, order, report } = this.#options;
    this.#gpus = gpusOfRanks(placement, this.#visible, process.env);
    this.#xids = watchXids({ native, gpus: this.#gpus, report: (xid) => report({ type: 'xid', ...xid }) });
    if (order.epoch === 0) void this.#reportMemory();
  }

  spawned(rank: number, pid: number): void {
    this.#xids?.spawned(rank, pid);
  }

  /** Null: none, or an instance without a number. */
  of(rank: number): HostGpu | null {
    return this.#gpus.get(rank) ?? null;
  }

  /** As GpuHealthReader.read. */
  health(): readonly GpuHealth[] {
    const addresses = Array.from(this.#gpus.values()).flatMap(({ address }) => address ?? []);
    return this.#health.read(new Set(addresses));
  }

  /** Tells what is known of the GPU of a rank that did not end well. */
  failed(rank: number): void {
    this.#xids?.look();
    const gpu = this.of(rank);
    if (gpu !== null) this.#options.report({ type: 'rank-gpu', rank, gpu });
  }

  /** No rank is left. Another attempt of the job finds its GPUs held. */
  stop(): void {
    const { epoch, maxRestarts, stays } = this.#options.order;
    this.#isStopped = true;
    this.#xids?.stop();
    if (stays || epoch >= maxRestarts) this.#locks.release();
  }

  async #reportMemory(): Promise<void> {
    const answer = await atFirst.get(this.#options.order.jobId);
    if (answer === undefined || this.#isStopped) return;
    this.#options.report({ type: 'gpu-memory', gpus: memoryOf(answer, this.#gpus.values()) });
  }
}
