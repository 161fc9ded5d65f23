/** The best channels that a search has found so far, copied from its working arrays. */
import type { FoundChannel } from './graph.ts';

export class BestChannels {
  count = 0;
  /** Links of all their paths. */
  hops = 0;
  readonly #gpus: number;
  /** [channel × GPUs + step]: GPU. */
  readonly #orders: Int32Array;
  /** By channel. */
  readonly #netIn: Int32Array;
  readonly #netOut: Int32Array;

  constructor(maxChannels: number, gpus: number) {
    this.#gpus = gpus;
    this.#orders = new Int32Array(maxChannels * gpus);
    this.#netIn = new Int32Array(maxChannels);
    this.#netOut = new Int32Array(maxChannels);
  }

  keep(count: number, hops: number, orders: Int32Array, netIn: Int32Array, netOut: Int32Array): void {
    this.count = count;
    this.hops = hops;
    this.#orders.set(orders);
    this.#netIn.set(netIn);
    this.#netOut.set(netOut);
  }

  channels(acrossHosts: boolean): FoundChannel[] {
    const channels: FoundChannel[] = [];
    for (let channel = 0; channel < this.count; channel++) {
      const order: number[] = [];
      const row = channel * this.#gpus;
      for (let step = 0; step < this.#gpus; step++) order.push(this.#orders[row + step] ?? 0);
      const nets = [this.#netIn[channel] ?? 0, this.#netOut[channel] ?? 0] as const;
      channels.push({ order, nets: acrossHosts ? nets : null });
    }
    return channels;
  }
}
