/** Which collectives of a rank tell when it came. */
import { expect, it } from 'vitest';
import { beginnings } from '../../worker/agent/bursts.ts';

interface Operation {
  readonly name: string;
  readonly startedNs: number;
  readonly endedNs: number;
}

/** Steps of `outside` ns, then `times` operations of 100 ns, 2 ns apart. */
function steps(outside: readonly number[], times: number): Operation[] {
  let now = 1000;
  return outside.flatMap((gap, step) => {
    now += gap;
    return Array.from({ length: times }, (_, index) => {
      const startedNs = now;
      now += 102;
      return { name: `${step}.${index}`, startedNs, endedNs: startedNs + 100 };
    });
  });
}

const usual = Array.from({ length: 40 }, (_, step) => 5000 + (step % 7) * 300);
const nameOf = ({ entry }: { readonly entry: Operation }): string => entry.name;

it.each([1, 2, 15])('the first of %i collectives in a row is taken, with the time outside before it', (times) => {
  const all = steps(usual, times);
  const taken = beginnings(all, all, 64);
  expect(taken.map(nameOf)).toEqual(usual.map((_, step) => `${step}.0`).slice(1));
  const between = taken.slice(1).map(({ outsideNs }) => outsideNs);
  expect(between).toEqual(usual.slice(2).map((gap) => gap + 2 * times));
});

it('the last beginnings are taken where there are more than asked for', () => {
  const all = steps(usual, 3);
  expect(beginnings(all, all, 5).map(nameOf)).toEqual(['35.0', '36.0', '37.0', '38.0', '39.0']);
});

it('one long pause makes no burst of what comes at regular intervals', () => {
  const all = steps(
    usual.map((gap, step) => (step === 20 ? gap * 10 : gap)),
    1,
  );
  expect(beginnings(all, all, 64)).toHaveLength(39);
});

it('every collective is taken where too few beginnings are left', () => {
  const all = steps(usual.slice(0, 10), 4);
  expect(beginnings(all, all, 64).map(nameOf)).toEqual(all.map(({ name }) => name));
});

it('time in operations of other communicators is not outside', () => {
  const own = steps(usual, 1);
  const others = own.map(({ startedNs }) => ({ startedNs: startedNs - 4000, endedNs: startedNs - 1000 }));
  const [, second] = beginnings(own, [...others, ...own], 64);
  expect(second?.outsideNs).toBe((usual[2] ?? 0) + 2 - 3000);
});

it('an operation that has not ended leaves no time outside', () => {
  const [one, two] = steps([5000, 5000], 1);
  if (one === undefined || two === undefined) throw new Error('two operations');
  const endless = { startedNs: 500, endedNs: 0 };
  expect(beginnings([one, two], [endless, one, two], 2).map(({ outsideNs }) => outsideNs)).toEqual([0, 0]);
});
