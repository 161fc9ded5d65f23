/** Verdicts that need no wait: calls that differ, a rank that failed, a host that was lost, ranks that do not join or have left. */
import { expect, it } from 'vitest';
import {
  differenceVerdict,
  hostSilentVerdict,
  initMissingVerdict,
  isWhole,
  leftVerdict,
  rankDeadVerdict,
  showsDifference,
} from '../../launcher/hang/ends.ts';
import { DifferingCalls } from '../../launcher/hang/differing-calls.ts';
import { ended, history, readings } from '../rig/positions.ts';
import type { PlantedJob } from '../rig/positions.ts';

const id = 'c0ffee'.padStart(16, '0');
const call = { collective: 'allReduce', count: 517, type: 'int32', operator: 'sum', root: null };
const hashes = [5, 4, 3, 2, 1];
const usual = { calls: history(5, hashes, call) };

const read = (job: PlantedJob) => readings(job)[1];
const odd = (calls: ReturnType<typeof history>) =>
  read({ comms: [{ id, ranks: [0, 1, 2, 3], all: usual, changes: { 2: { calls } } }], ranksPerHost: 2 });

it.each([
  ['mismatch-size', { ...call, count: 1034 }],
  ['mismatch-type', { ...call, type: 'float32' }],
  ['mismatch-order', { ...call, collective: 'broadcast', operator: null, root: 0 }],
  ['mismatch-root', { ...call, root: 1 }],
] as const)('a verdict %s blames the one rank that called otherwise', (kind, other) => {
  const reading = odd(history(5, [9, ...hashes.slice(1)], other));
  expect(isWhole(reading)).toBe(true);
  expect(differenceVerdict(reading, 'unused')).toMatchObject({
    kind,
    confidence: 'certain',
    communicator: { id, size: 4 },
    operation: { number: 5, collective: 'allReduce', count: 517 },
    blamed: [{ ranks: '2', host: 'h1' }],
    message: expect.stringMatching(
      /^the ranks’ calls differ from .* number 5: rank 2 on h1 .*\(communicator 0*c0ffee\)$/,
    ),
  });
});

it('the ranks inside of their operation that called as most did wait, and no others', () => {
  const changes = { 2: { calls: history(5, [9, ...hashes.slice(1)], call) }, 3: { inside: false } };
  const reading = read({ comms: [{ id, ranks: [0, 1, 2, 3], all: usual, changes }] });
  expect(differenceVerdict(reading, 'unused')).toMatchObject({ waiting: { ranks: '0-1', count: 2 }, seconds: 0 });
});

it('calls differ in the communicator of that id and epoch alone', () => {
  const reading = odd(history(5, [9, ...hashes.slice(1)], call));
  const asked = [[id, 0] as const, [id, 1] as const, [id.replace('c', 'd'), 0] as const];
  expect(asked.map(([communicator, epoch]) => showsDifference(reading, communicator, epoch))).toEqual([
    true,
    false,
    false,
  ]);
});

it('a difference is not known of all ranks while one of them is missing, or says nothing of its calls', () => {
  const changes = { 2: { calls: history(5, [9, ...hashes.slice(1)], call) } };
  const missing = read({ comms: [{ id, ranks: [0, 1, 2, 3], size: 5, all: usual, changes }] });
  expect([showsDifference(missing, id, 0), isWhole(missing)]).toEqual([true, false]);
  const first = { 0: { calls: history(1, [5], call) }, 1: { calls: history(1, [9], { ...call, count: 9 }) } };
  expect(isWhole(read({ comms: [{ id, ranks: [0, 1], changes: first }] }))).toBe(true);
  expect(isWhole(read({ comms: [{ id, ranks: [0, 1, 2], changes: first }] }))).toBe(false);
});

it('a rank that has gone on is compared by the call that its flight recorder remembers', () => {
  const recent = [{ number: 5, ...call, count: 9 }];
  const reading = odd({ ...history(6, [8, 9, ...hashes.slice(1)], call), recent });
  expect(differenceVerdict(reading, 'unused')).toMatchObject({ kind: 'mismatch-size', blamed: [{ ranks: '2' }] });
});

it('ranks that have not made their call yet are waited for', () => {
  const early = history(4, hashes.slice(1), call);
  const changes = { 1: { calls: early }, 2: { calls: history(5, [9, ...hashes.slice(1)], call) } };
  const reading = read({ comms: [{ id, ranks: [0, 1, 2, 3], all: usual, changes }], ranksPerHost: 4 });
  expect(showsDifference(reading, id, 0)).toBe(true);
  expect(isWhole(reading)).toBe(false);
});

it('the latest call of each rank counts among several reports', () => {
  const calls = new DifferingCalls();
  const late = odd(history(5, [9, ...hashes.slice(1)], call));
  for (const reading of [late, odd(history(4, hashes.slice(1), call))])
    for (const [host, where] of reading.answers) calls.add(host, where, `${id}:0`);
  expect(isWhole(calls.reading)).toBe(true);
});

it('where the pages show no difference the engine’s sentence is the verdict', () => {
  const reading = read({ comms: [{ id, ranks: [0, 1], all: usual }], ranksPerHost: 2 });
  expect(differenceVerdict(reading, 'rank 0 sent 8 bytes where rank 1 expects 4')).toMatchObject({
    kind: 'mismatch-order',
    confidence: 'suspected',
    blamed: [],
    message: expect.stringMatching(/^rank 0 sent 8 bytes where rank 1 expects 4 \(communicator/),
  });
});

it.each([
  [{}, 'in operation 17 (allReduce) of communicator', 17],
  [ended(16), 'after operation 16 (allReduce) of communicator', null],
  [ended(0), 'before its first operation of communicator', null],
] as const)('a rank that failed is named with where it was (%j)', (change, words, operation) => {
  const where = read({ comms: [{ id, ranks: [0, 1], changes: { 1: change } }], ranksPerHost: 2 }).answers.get('h0');
  const verdict = rankDeadVerdict({ rank: 1, host: 'h0', pid: 7, phrase: 'died of SIGKILL', where: where ?? null });
  expect(verdict).toMatchObject({ kind: 'rank-dead', confidence: 'certain', blamed: [{ ranks: '1', where: 'dead' }] });
  expect(verdict.operation?.number ?? null).toBe(operation);
  expect(verdict.message).toContain(`died of SIGKILL, ${words}`);
});

it.each([
  [0, null],
  [1, { number: 1, collective: 'allReduce' }],
] as const)('a rank that has ended %i operations is named with the last of them', (operation, last) => {
  const where = read({ comms: [{ id, ranks: [0, 1], all: ended(operation) }] }).answers.get('h0') ?? null;
  expect(rankDeadVerdict({ rank: 1, host: 'h0', pid: 7, phrase: 'exited', where }).blamed).toMatchObject([{ last }]);
});

it.each([
  ['the one that it is inside of', { ...ended(3), progressUs: 9 }, { operation: 4, progressUs: 8 }, 4],
  ['the one that it used last', { ...ended(3), progressUs: 9 }, { ...ended(4), progressUs: 8 }, 3],
  ['the one that it entered last', { operation: 3, progressUs: 8 }, { operation: 4, progressUs: 9 }, 4],
] as const)('a rank that failed in several communicators is named with %s', (_which, one, other, operation) => {
  const comms = [
    { id, ranks: [0, 1], changes: { 1: one } },
    { id: id.replace('c', 'd'), ranks: [1, 0], changes: { 1: other } },
  ];
  const where = read({ comms }).answers.get('h0') ?? null;
  const verdict = rankDeadVerdict({ rank: 1, host: 'h0', pid: 7, phrase: 'exited', where });
  expect(verdict.blamed).toMatchObject([{ last: { number: operation } }]);
});

it('a rank that has left is blamed where its host knows it', () => {
  const reading = read({ comms: [{ id, ranks: [0, 1], size: 3 }], ranksPerHost: 2 });
  const left = { communicator: id, epoch: 0, rank: 2, jobRank: 6, sentence: 'rank 2 has left' };
  expect(leftVerdict(left, reading)).toMatchObject({ kind: 'left', blamed: [{ ranks: '6' }], waiting: { count: 2 } });
  const evidence = { kind: 'left', value: 'rank 2 has left', unit: null };
  expect(leftVerdict({ ...left, jobRank: 0 }, reading)).toMatchObject({
    blamed: [{ ranks: '0', host: 'h0', where: 'left' }],
    evidence: [{ ...evidence, host: 'h0', subject: 'rank 0' }],
  });
  expect(leftVerdict({ ...left, jobRank: -1 }, reading)).toMatchObject({
    blamed: [],
    evidence: [{ ...evidence, host: null, subject: 'rank 2' }],
  });
});

it('a rank that has left another communicator, or an earlier one, leaves nobody behind here', () => {
  const reading = read({ comms: [{ id, ranks: [0, 1], size: 3 }], ranksPerHost: 2 });
  const left = { communicator: id, epoch: 0, rank: 2, jobRank: 6, sentence: 'rank 2 has left' };
  for (const other of [{ epoch: 1 }, { communicator: id.replace('c', 'd') }])
    expect(leftVerdict({ ...left, ...other }, reading)).toMatchObject({
      communicator: null,
      operation: null,
      waiting: { count: 0 },
    });
});

it.each([
  ['a call that began is one of its bytes', { operation: 5, ...usual }, { number: 5, bytes: 4096, count: 517 }],
  ['a call that did not begin is one without', { ...ended(4), ...usual }, { number: 5, bytes: 0, count: 517 }],
  ['a call of no arguments is the last that began', { ...ended(4), calls: history(5, hashes) }, { number: 4 }],
  ['a rank of no call is the last to count', { ...ended(0), calls: history(1, [1], call) }, { number: 1, bytes: 0 }],
] as const)(
  'the verdict about a rank that has left has the operation in which it is missed: %s',
  (_title, change, operation) => {
    const reading = read({ comms: [{ id, ranks: [0, 1], all: ended(0), changes: { 1: change } }] });
    const left = { communicator: id, epoch: 0, rank: 2, jobRank: 6, sentence: 'rank 2 has left' };
    expect(leftVerdict(left, reading)).toMatchObject({ operation });
  },
);

it('a lost host and ranks that do not join are verdicts', () => {
  expect(hostSilentVerdict('h3', [4, 5], 'silent for 5.1 s')).toMatchObject({
    kind: 'host-silent',
    blamed: [{ ranks: '4-5', host: 'h3' }],
    message: 'h3 was lost: silent for 5.1 s',
    seconds: 0,
    consequences: 0,
  });
  const names = Array.from({ length: 12 }, (_, rank) => `rank ${rank}`);
  const verdict = initMissingVerdict('communicator 1a2b', names, [0, 1], 10);
  expect(verdict).toMatchObject({ kind: 'init-missing', blamed: [{ ranks: '0-1' }] });
  expect(verdict.message).toMatch(/^communicator 1a2b has waited 10 s for rank 0, .* rank 9 and 2 more$/);
});

it.each([
  [9, 'rank 8'],
  [10, 'rank 9'],
  [11, 'rank 9 and 1 more'],
])('ten of %i ranks that do not join are named, and at most 32 are evidence', (count, last) => {
  const names = Array.from({ length: count }, (_, rank) => `rank ${rank}`);
  const verdict = initMissingVerdict('it', names, [], 10);
  expect(verdict.message).toMatch(new RegExp(`^it has waited 10 s for rank 0, .*, ${last}$`));
  expect(verdict.evidence.map(({ subject }) => subject)).toEqual(names);
  const many = initMissingVerdict('it', [...names, ...names, ...names, ...names], [7], 10);
  expect([verdict.blamed, many.blamed]).toMatchObject([[], [{ ranks: '7', where: 'outside' }]]);
  expect(many.evidence.map(({ subject }) => subject)).toEqual([...names, ...names, ...names, ...names].slice(0, 32));
});
