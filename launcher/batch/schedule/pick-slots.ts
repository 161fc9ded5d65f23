/**
 * Which of a host's free slots a task gets. Neighbours in number are most often neighbours on NVLink and PCIe too, so a task gets
 * consecutive ones where it can, out of the shortest run of free ones that has enough.
 */

/** `free` ascends and has `count` numbers at least; so does what is returned, with exactly so many. */
export function pickSlots(free: readonly number[], count: number): number[] {
  const picked: number[] = [];
  let runs = runsOf(free);
  while (picked.length < count) {
    const wanted = count - picked.length;
    const run = shortestOf(runs, wanted) ?? longestOf(runs);
    if (run === undefined) throw new RangeError(`${count} slots are wanted of ${free.length}`);
    picked.push(...partOf(run, Math.min(wanted, run.length)));
    runs = runs.filter((other) => other !== run);
  }
  return picked.sort((one, other) => one - other);
}

function runsOf(numbers: readonly number[]): number[][] {
  const runs: number[][] = [];
  for (const number of numbers) {
    const last = runs.at(-1);
    if (last !== undefined && last.at(-1) === number - 1) last.push(number);
    else runs.push([number]);
  }
  return runs;
}

/** The shortest run of at least `wanted` numbers, the first of equal ones. */
function shortestOf(runs: readonly number[][], wanted: number): number[] | undefined {
  let best: number[] | undefined;
  for (const run of runs) if (run.length >= wanted && (best === undefined || run.length < best.length)) best = run;
  return best;
}

function longestOf(runs: readonly number[][]): number[] | undefined {
  let best: number[] | undefined;
  for (const run of runs) if (best === undefined || run.length > best.length) best = run;
  return best;
}

/** Islands have a power of two of slots and begin at multiples of it: 4-7 of 1-7, where 4 are wanted, leaves none cut. */
function partOf(run: readonly number[], count: number): readonly number[] {
  const isIsland = Number.isInteger(Math.log2(count));
  const aligned = isIsland ? run.findIndex((number, index) => number % count === 0 && index + count <= run.length) : 0;
  const start = Math.max(0, aligned);
  return run.slice(start, start + count);
}
