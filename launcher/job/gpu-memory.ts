/** Whether the GPUs of a job have free memory: reported as soon as all hosts have answered. */
import type { FreeGpuMemory } from '../../control/messages/gpu.ts';
import { freeText, holdersText } from '../../control/gpu-memory-text.ts';
import type { Clock, Countdown } from '../../control/clock.ts';
import { gpuList } from '../text/gpu-words.ts';
import { hostsText } from './preflight.ts';

/** NVIDIA's driver may take long to start: who has not answered by then is left out. */
const TIMEOUT_MS = 3000;
/** Less is what drivers, screens and small contexts take: a part of the whole, and bytes. */
const TAKEN_PART = 0.1;
const TAKEN_BYTES = 2 * 2 ** 30;
/** Hosts that are listed one by one. */
const MAX_HOSTS = 4;

interface GpuMemoryCheckOptions {
  readonly clock: Clock;
  report(sentence: string): void;
}

export class GpuMemoryCheck {
  readonly #options: GpuMemoryCheckOptions;
  readonly #answers = new Map<string, readonly FreeGpuMemory[]>();
  /** In the job's order; null: not known yet, or judged already. */
  #awaited: readonly string[] | null = null;
  #timeout: Countdown | null = null;

  constructor(options: GpuMemoryCheckOptions) {
    this.#options = options;
  }

  /** These hosts have GPUs and will say. */
  expect(hosts: readonly string[]): void {
    this.#awaited = hosts;
    this.#timeout = this.#options.clock.after(TIMEOUT_MS, () => this.#judge());
    this.#lookWhetherAll();
  }

  receive(host: string, gpus: readonly FreeGpuMemory[]): void {
    this.#answers.set(host, gpus);
    this.#lookWhetherAll();
  }

  close(): void {
    this.#timeout?.cancel();
    this.#awaited = null;
  }

  #lookWhetherAll(): void {
    if (this.#awaited?.every((host) => this.#answers.has(host)) === true) this.#judge();
  }

  #judge(): void {
    const answers = (this.#awaited ?? []).map((host) => [host, this.#answers.get(host) ?? []] as const);
    this.close();
    const sentence = memorySentence(new Map(answers));
    if (sentence !== null) this.#options.report(sentence);
  }
}

/** `hosts differ in free GPU memory: 3 hosts: 139 of 140 GiB; node7: 20 of 140 GiB on GPU 3 (held by …)`; null: none is short of it. */
export function memorySentence(answers: ReadonlyMap<string, readonly FreeGpuMemory[]>): string | null {
  const hosts = Array.from(answers, ([name, gpus]) => ({ name, gpus, taken: gpus.filter(isTaken) }));
  const short = hosts.filter(({ taken }) => taken.length > 0);
  if (short.length === 0) return null;
  const fine = hosts.filter(({ gpus, taken }) => gpus.length > 0 && taken.length === 0);
  const texts = short.slice(0, MAX_HOSTS).map(({ name, taken }) => `${name}: ${takenText(taken)}`);
  if (short.length > MAX_HOSTS) texts.push(`${short.length - MAX_HOSTS} more hosts likewise`);
  const [smallest] = fine.flatMap(({ gpus }) => gpus).toSorted((one, other) => one.free - other.free);
  if (smallest === undefined) return `GPUs lack free memory: ${texts.join('; ')}`;
  return `hosts differ in free GPU memory: ${[`${hostsText(fine)}: ${freeText(smallest)}`, ...texts].join('; ')}`;
}

function isTaken({ total, free }: FreeGpuMemory): boolean {
  return total - free > Math.max(TAKEN_BYTES, total * TAKEN_PART);
}

/** Of several GPUs the one with the least. */
function takenText(taken: readonly FreeGpuMemory[]): string {
  const [worst] = taken.toSorted((one, other) => one.free - other.free);
  if (worst === undefined) return '';
  const held = new Map(taken.flatMap(({ holders }) => holders.map((holder) => [holder.pid, holder] as const)));
  return `${freeText(worst)} on ${gpuList(taken.map(({ gpu }) => gpu))} (held by ${holdersText(Array.from(held.values()))})`;
}
