/** Numbers that are the same in every run: `random(n)` is a whole number from 0 to n-1. */
export type Random = (below: number) => number;

/** mulberry32: small, and good enough for test data. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  return (below) => {
    state = (state + 0x6d2b_79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * below);
  };
}

/** A random order of `items`. */
export function shuffled<Item>(items: readonly Item[], random: Random): Item[] {
  const rest = [...items];
  const result: Item[] = [];
  while (rest.length > 0) result.push(...rest.splice(random(rest.length), 1));
  return result;
}

export function randomBytes(length: number, random: Random): Uint8Array {
  return Uint8Array.from({ length }, () => random(256));
}
