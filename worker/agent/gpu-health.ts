/** Clocks, throttling, ECC errors and PCIe links of the ranks' GPUs. NVML may block, so an answer has what the question before has found. */
import type { GpuHealth } from '../../control/messages/host-health.ts';
import { MAX_HEALTH_GPUS } from '../../control/messages/host-health.ts';
import type { Native } from '../engine/native.ts';
import { sysfsAddress } from '../topology/walk.ts';

export class GpuHealthReader {
  readonly #native: Pick<Native, 'gpuHealth'>;
  #last: readonly GpuHealth[] = [];
  #isReading = false;

  constructor(native: Pick<Native, 'gpuHealth'>) {
    this.#native = native;
  }

  /** What is known of these GPUs, by their addresses; the next call knows what they are like now. */
  read(addresses: ReadonlySet<string>): readonly GpuHealth[] {
    if (addresses.size > 0 && !this.#isReading) void this.#refresh();
    return this.#last.filter(({ address }) => addresses.has(address)).slice(0, MAX_HEALTH_GPUS);
  }

  async #refresh(): Promise<void> {
    this.#isReading = true;
    const answer = await this.#native.gpuHealth();
    this.#isReading = false;
    if (typeof answer === 'string') return;
    this.#last = answer.flatMap(({ busId, ...health }) => {
      const address = sysfsAddress(busId);
      return address === null ? [] : [{ address, ...health }];
    });
  }
}
