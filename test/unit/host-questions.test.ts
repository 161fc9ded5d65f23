/** Questions to several agents at once: each is over when all of its hosts have answered, when its time is over, or when nobody answers any more. */
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { HostQuestions } from '../../launcher/job/host-questions.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

function asked() {
  const settled: string[] = [];
  const questions = new HostQuestions<{ name: string; hosts: { name: string }[]; done: Set<string> }>((question) =>
    settled.push(`${question.name}: ${[...question.done].join(' ')}`),
  );
  return {
    questions,
    settled,
    begin: (name: string, hosts: readonly string[], limitMs = 1000) =>
      questions.begin({ name, hosts: hosts.map((host) => ({ name: host })), done: new Set() }, limitMs),
    answer: (request: number, host: string): void => {
      questions.get(request)?.done.add(host);
      questions.settleIfAll(request);
    },
  };
}

it('the numbers of questions distinguish those that are under way together', () => {
  const { settled, begin, answer, questions } = asked();
  const [one, two] = [begin('one', ['a', 'b']), begin('two', ['a', 'b'])];
  for (const [request, host] of [
    [two, 'a'],
    [one, 'b'],
    [two, 'b'],
  ] as const) {
    answer(request, host);
  }
  expect(settled).toEqual(['two: a b']);
  answer(one, 'a');
  answer(one, 'a');
  expect(settled).toEqual(['two: a b', 'one: b a']);
  expect([one, two].map((request) => questions.get(request))).toEqual([undefined, undefined]);
  vi.runAllTimers();
  expect(settled).toHaveLength(2);
});

it('a question whose time is over has the answers that have come', () => {
  const { settled, begin, answer } = asked();
  const request = begin('one', ['a', 'b'], 500);
  answer(request, 'b');
  vi.advanceTimersByTime(499);
  expect(settled).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(settled).toEqual(['one: b']);
  answer(request, 'a');
  expect(settled).toHaveLength(1);
});

it('all open questions are over when no host answers any more', () => {
  const { settled, begin, questions } = asked();
  begin('one', ['a']);
  begin('two', []);
  questions.close();
  questions.close();
  expect(settled).toEqual(['one: ', 'two: ']);
});
