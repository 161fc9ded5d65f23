/**
 * Bandwidths that channels are tried with, fastest first, in MB/s: such that some number of channels fills the links of known machines (NCCL 2.30,
 * src/graph/search.cc). Inside a host NVLinks decide, between hosts the NICs.
 */
interface Speeds {
  readonly inside: readonly number[];
  readonly between: readonly number[];
}

const SLOW = [2400, 1200, 240, 120];

const UP_TO_AMPERE: Speeds = {
  inside: [40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3].map(toMegabytes),
  between: [...[48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3].map(toMegabytes), ...SLOW],
};
const HOPPER: Speeds = {
  inside: [60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3].map(toMegabytes),
  between: [...[48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3].map(toMegabytes), ...SLOW],
};
const BLACKWELL: Speeds = {
  inside: [90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18].map(toMegabytes),
  between: [...[96, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3].map(toMegabytes), ...SLOW],
};

function toMegabytes(gigabytes: number): number {
  return Math.round(gigabytes * 1000);
}

/** `computeCapability`: the least of the host's GPUs. */
export function speedsFor(computeCapability: number, acrossHosts: boolean): readonly number[] {
  const speeds = computeCapability >= 100 ? BLACKWELL : computeCapability >= 90 ? HOPPER : UP_TO_AMPERE;
  return acrossHosts ? speeds.between : speeds.inside;
}
