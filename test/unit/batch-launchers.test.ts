/** Which launcher runs an attempt. */
import { describe, expect, it } from 'vitest';
import { CalledAttempts, type CalledAttempt } from '../../launcher/batch/run/called-attempts.ts';
import { OwnAttempt } from '../../launcher/batch/run/own-attempt.ts';
import { AttemptRecords } from '../../launcher/batch/attempt/records.ts';
import { callIn, newsIn } from '../../launcher/batch/attempt/channel.ts';

const handler = { started: () => undefined, ended: () => undefined };
const called = (directory: string, place: string, more: Partial<CalledAttempt> = {}): CalledAttempt => ({
  attempt: new OwnAttempt(new AttemptRecords(directory), handler),
  directory,
  output: '/out',
  descriptor: null,
  place,
  calledAt: 0,
  ...more,
});
const waiting = (...all: readonly CalledAttempt[]) => {
  const attempts = new CalledAttempts();
  for (const one of all) attempts.add(one);
  return attempts;
};
const nobody = () => ({ launchers: 0, soon: false });
const soon = () => ({ launchers: 1, soon: true });

describe('an attempt that waits for a launcher', () => {
  it('gets the first one that is free on its hosts, in its turn', () => {
    const attempts = waiting(called('a', 'h1'), called('b', 'h2'), called('c', 'h2'));
    const free = ['h2', 'h3', 'h2', 'h2', 'h1'].map((place) => attempts.takeAt(place)?.directory);
    expect(free).toEqual(['b', undefined, 'c', undefined, 'a']);
    expect(attempts.isEmpty).toBe(true);
  });

  it('gets a new one where there are fewest, in its turn', () => {
    const attempts = waiting(called('a', 'h1'), called('b', 'h1'), called('c', 'h2'), called('d', 'h1 h2'));
    const launchers: Record<string, number> = { h1: 1, h2: 0, 'h1 h2': 1 };
    const taken = [1, 2, 3, 4, 5].map(() => {
      const next = attempts.takeForNew(0, (place) => ({ launchers: launchers[place] ?? 0, soon: false }));
      if (next !== null) launchers[next.place] = (launchers[next.place] ?? 0) + 1;
      return next?.directory;
    });
    expect(taken).toEqual(['c', 'a', 'd', 'b', undefined]);
  });

  it('waits half a second at most for one that is likely to be free soon', () => {
    const attempts = waiting(called('a', 'h1'), called('b', 'h2', { calledAt: 100 }));
    expect(attempts.takeForNew(499, soon)).toBeNull();
    expect(attempts.takeForNew(500, soon)?.directory).toBe('a');
    expect(attempts.takeForNew(599, soon)).toBeNull();
    expect(attempts.takeForNew(600, soon)?.directory).toBe('b');
  });

  it('gets a new one at once where its output is no file', () => {
    const attempts = waiting(called('a', 'h1', { descriptor: 9 }));
    expect(attempts.takeAt('h1')).toBeNull();
    expect(attempts.takeForNew(0, soon)?.directory).toBe('a');
  });

  it('is forgotten with all others', () => {
    const attempts = waiting(called('a', 'h1'), called('b', 'h1'));
    expect(attempts.clear().map(({ directory }) => directory)).toEqual(['a', 'b']);
    expect(attempts.takeForNew(0, nobody)).toBeNull();
  });
});

it('a scheduler and its launchers refuse what is no message of theirs', () => {
  const call = { directory: '/a', output: null, isLast: false };
  expect(callIn(JSON.stringify(call))).toEqual(call);
  expect(['begun', 'running', 'ended'].map((news) => newsIn(JSON.stringify(news)))).toEqual([
    'begun',
    'running',
    'ended',
  ]);
  expect(() => newsIn('"over"')).toThrow('Invalid type');
  expect(() => callIn('{}')).toThrow('Invalid key');
});
