/** The names of collectives as users write them. */
import { expect, it } from 'vitest';
import { collectives } from '../../launcher/cli/command-table.ts';
import { collectiveWords, collectivesOf, wordOfProgram } from '../../launcher/cli/collectives.ts';
import { failureFrom } from './failure-from.ts';

it('collectives stand in several words or between commas, and "all" is each of them', () => {
  expect(collectiveWords(['all_reduce,broadcast', 'reduce'])).toEqual(['all_reduce', 'broadcast', 'reduce']);
  expect(collectiveWords(['all'])).toEqual([...collectives]);
  expect(collectivesOf(['all_reduce', 'alltoall'])).toEqual(['allReduce', 'allToAll']);
});

it('a misspelt collective is refused with the nearest one, or with all', () => {
  expect(failureFrom(() => collectiveWords(['all_reduc']))).toMatchObject({
    message: 'no collective is called all_reduc',
    remedy: 'did you mean all_reduce?',
  });
  expect(failureFrom(() => collectiveWords(['x']))).toMatchObject({ remedy: `there are ${collectives.join(', ')}` });
});

it.each([
  ['all_reduce_perf', 'all_reduce'],
  ['./build/sendrecv_perf', 'sendrecv'],
  ['hypercube_perf', 'hypercube_perf'],
  ['all_reduce', 'all_reduce'],
  ['net', 'net'],
])("perf takes nccl-tests' program %s as %s", (typed, word) => {
  expect(wordOfProgram(typed)).toBe(word);
});
