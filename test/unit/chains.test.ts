/** Whether a chain through all GPUs of a machine exists at a speed and a distance. */
import { expect, test } from 'vitest';
import { Chains } from '../../control/planner/search/chains.ts';
import type { Uses } from '../../control/planner/search/loads.ts';

interface Path {
  readonly hops: number;
  readonly distance: number;
  readonly bandwidth: number;
}

const none: Path = { hops: 0, distance: 0, bandwidth: 0 };
const near: Path = { hops: 1, distance: 2, bandwidth: 20 };

/** Paths of `count` GPUs: those listed as "from to", the others do not exist. */
function chains(count: number, paths: Readonly<Record<string, Path>>): Chains {
  const between = Array.from({ length: count * count }, (_, index) => {
    return paths[`${Math.floor(index / count)} ${index % count}`] ?? none;
  });
  const uses: Uses = Object.assign(Object.create(null), { between });
  return new Chains(count, uses);
}

test.each<[number, string[], boolean]>([
  [1, [], true],
  [2, [], false],
  [2, ['0 1'], true],
  [2, ['1 0'], true],
  [3, ['0 1', '0 2'], false],
  [3, ['1 0', '0 2'], true],
  [3, ['2 1', '1 0'], true],
  [4, ['0 1', '1 0', '2 3', '3 2'], false],
  [4, ['0 1', '1 2', '0 3', '3 1'], true],
  [4, ['0 1', '1 2', '2 0'], false],
])('%d GPUs with the paths %j have a chain: %s', (count, paths, is) => {
  expect(chains(count, Object.fromEntries(paths.map((path) => [path, near]))).mayBe(20, 2)).toBe(is);
});

test('a path serves up to its bandwidth and from its distance on', () => {
  const all = chains(3, { '0 1': near, '1 2': { hops: 1, distance: 4, bandwidth: 10 } });
  const answers = [
    [10, 4],
    [10, 3],
    [11, 4],
    [10, 9],
    [10, 4],
  ].map(([speed = 0, farthest = 0]) => all.mayBe(speed, farthest));
  expect(answers).toEqual([true, false, false, true, true]);
});

test('after too many steps the question is left open', () => {
  const paths: Record<string, Path> = {};
  for (let from = 0; from < 9; from++) for (let to = 0; to < 9; to++) if (from !== to) paths[`${from} ${to}`] = near;
  expect(chains(10, paths).mayBe(20, 2)).toBe(true); // nothing leads to the last one
});
