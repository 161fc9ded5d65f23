/**
 * How far another host's CLOCK_MONOTONIC is ahead of the launcher's, as bounds. The host reads its clock at some moment between question and answer,
 * so that each reading gives a lower and an upper bound; those of several readings hold together. They widen while they age, because no two clocks
 * run equally fast.
 */

import type { HostClock } from '../model/recorder.ts';

/** Between the speeds of two clocks. Crystals differ by less, and so do clocks that a time service adjusts gradually. */
export const CLOCK_DRIFT = 100e-6;

export interface ClockReading {
  /** By the launcher's clock, in nanoseconds. */
  readonly askedNs: number;
  readonly answeredNs: number;
  /** By the other clock, at some moment in between. */
  readonly itsNs: number;
}

export class ClockBounds {
  #lowNs: number;
  #highNs: number;
  /** When they held, by the launcher's clock. */
  #atNs: number;

  constructor(first: ClockReading) {
    [this.#lowNs, this.#highNs] = boundsOf(first);
    this.#atNs = first.answeredNs;
  }

  add(reading: ClockReading): void {
    const { answeredNs } = reading;
    const [lowNs, highNs] = boundsOf(reading);
    const { offsetNs, errorNs } = this.at(answeredNs);
    const [low, high] = [Math.max(lowNs, offsetNs - errorNs), Math.min(highNs, offsetNs + errorNs)];
    // Bounds that exclude each other belong to a clock that has jumped, as that of a suspended machine: the latest are right.
    [this.#lowNs, this.#highNs] = low <= high ? [low, high] : [lowNs, highNs];
    this.#atNs = answeredNs;
  }

  /** At a moment by the launcher's clock. */
  at(nowNs: number): HostClock {
    const drift = CLOCK_DRIFT * Math.abs(nowNs - this.#atNs);
    return {
      offsetNs: Math.round((this.#lowNs + this.#highNs) / 2),
      errorNs: Math.ceil((this.#highNs - this.#lowNs) / 2 + drift),
    };
  }
}

function boundsOf({ askedNs, answeredNs, itsNs }: ClockReading): [lowNs: number, highNs: number] {
  return [itsNs - answeredNs, itsNs - askedNs];
}
