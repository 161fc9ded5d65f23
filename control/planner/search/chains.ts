/** Whether a chain through all GPUs is possible at all: every channel has one, whatever it does at NICs, except CollNet's direct form. */
import type { Uses } from './loads.ts';

/** After so many GPUs it is left open. */
const STEPS = 1 << 10;

/** Of one machine. */
export class Chains {
  readonly #gpus: number;
  readonly #uses: Uses;
  /** By speed and distance; and by the paths that are wide and near enough. */
  readonly #known = new Map<number, boolean>();
  readonly #knownByPaths = new Map<string, boolean>();
  #steps = 0;

  constructor(gpus: number, uses: Uses) {
    this.#gpus = gpus;
    this.#uses = uses;
  }

  /** False if no chain of such paths exists. */
  mayBe(speed: number, farthest: number): boolean {
    const key = speed * 16 + farthest;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const isPath = new Uint8Array(this.#uses.between.length);
    this.#uses.between.forEach((use, i) => {
      isPath[i] = use.hops > 0 && use.distance <= farthest && use.bandwidth >= speed ? 1 : 0;
    });
    const paths = isPath.join('');
    const is = this.#knownByPaths.get(paths) ?? this.#isThere(isPath);
    this.#known.set(key, is);
    this.#knownByPaths.set(paths, is);
    return is;
  }

  #isThere(isPath: Uint8Array): boolean {
    this.#steps = STEPS;
    const isUsed = new Uint8Array(this.#gpus);
    for (let gpu = 0; gpu < this.#gpus; gpu++) if (this.#goesOn(gpu, 1, isUsed, isPath)) return true;
    return false;
  }

  #goesOn(gpu: number, count: number, isUsed: Uint8Array, isPath: Uint8Array): boolean {
    this.#steps -= 1;
    if (count === this.#gpus || this.#steps === 0) return true;
    isUsed[gpu] = 1;
    for (let next = 0; next < this.#gpus; next++) {
      if (isUsed[next] === 1 || isPath[gpu * this.#gpus + next] !== 1) continue;
      if (this.#goesOn(next, count + 1, isUsed, isPath)) return true;
    }
    isUsed[gpu] = 0;
    return false;
  }
}
