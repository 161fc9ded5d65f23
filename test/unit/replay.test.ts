/** Recorded operations gathered from agents, brought together, and shown. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { type Frame, FrameKind } from '../../control/messages/frame.ts';
import { RecordFlag, type RecorderAnswer, type RecorderEntry } from '../../control/messages/recorder.ts';
import { encodeColumns } from '../../control/messages/recorder-columns.ts';
import { RecorderReader } from '../../launcher/job/recorder.ts';
import { replayedCommunicators } from '../../launcher/replay/operations.ts';
import { latestNs, perfettoTrace } from '../../launcher/replay/perfetto.ts';
import { type Replay, readReplay, type ReplayedRank } from '../../launcher/replay/read-file.ts';
import { replayText } from '../../launcher/replay/text.ts';
import { answeredClocks } from '../rig/clocks.ts';
import { entryOf } from '../rig/recorded.ts';
import { recordedId, recordedRank, recordedReplay } from '../rig/replayed.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-replay-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => void vi.useRealTimers());

const id = recordedId;
const show = { rank: null, last: 32 };
const rankOf = recordedRank;
const replayOf = (ranks: readonly ReplayedRank[], size = 3): Replay => recordedReplay(ranks, { size });

function operationsOf(replay: Replay) {
  return replayedCommunicators(replay).flatMap(({ operations }) => operations);
}

const late = (sequence: number, ns: number): RecorderEntry => {
  const entry = entryOf(sequence);
  return { ...entry, enqueuedNs: entry.enqueuedNs + ns, startedNs: entry.startedNs + ns, endedNs: entry.endedNs + ns };
};
const running = (sequence: number): RecorderEntry => entryOf(sequence, { endedNs: 0 });

describe('operations of all ranks', () => {
  test('the rank that began last and the rank that did not come are named', () => {
    const ranks = [rankOf(0, [entryOf(1), running(2)]), rankOf(1, [late(1, 500)]), rankOf(2, [entryOf(1), running(2)])];
    expect(operationsOf(replayOf(ranks))).toMatchObject([
      { number: 1, last: 1, missing: [], unknown: 0, differs: false },
      { number: 2, missing: [1], unknown: 0 },
    ]);
  });

  test('nobody is missing where a recorder has wrapped or is not there', () => {
    const wrapped = rankOf(1, [entryOf(9000)], { recorded: 9000, oldest: 4905 });
    expect(operationsOf(replayOf([rankOf(0, [running(2)]), wrapped]))).toMatchObject([
      { number: 2, missing: [], unknown: 2 },
      { number: 9000, missing: [0], unknown: 1 },
    ]);
  });

  test('ranks that called something else are marked', () => {
    const other = entryOf(1, { collective: 3, peer: 0 });
    const replay = replayOf([rankOf(0, [entryOf(1)]), rankOf(1, [other])], 2);
    expect(operationsOf(replay)).toMatchObject([{ differs: true }]);
    expect(replayText(replay, replayedCommunicators(replay), show)).toContain(
      'allReduce float32 sum / broadcast float32 root 0 !',
    );
  });

  test('times are those of the launcher whatever the clock of the host', () => {
    const clock = { offsetNs: 5_000_000, errorNs: 2000 };
    const ahead = rankOf(1, [late(1, 5_000_300)], { clock });
    const replay = replayOf([rankOf(0, [entryOf(1)]), ahead], 2);
    expect(operationsOf(replay)[0]?.parts.map(({ startedNs }) => startedNs)).toEqual([1_000_001_100, 1_000_001_400]);
    expect(replayText(replay, replayedCommunicators(replay), show)).toContain('may be wrong by 2 us');
  });

  test('operations on GPUs are shown as called, and a table says so', () => {
    const onGpu = entryOf(1, { flags: RecordFlag.onGpu, startedNs: 0, endedNs: 0 });
    const replay = replayOf([rankOf(0, [onGpu]), rankOf(1, [onGpu])], 2);
    const text = replayText(replay, replayedCommunicators(replay), show);
    expect(text).toMatch(/^called: on a GPU/m);
    expect(text).toMatch(/ \+0 called +\+0 called /);
  });

  test('both ends of a message meet by the number of their pair', () => {
    const message = { collective: 8, flags: RecordFlag.send + RecordFlag.inGroup, operation: 1 };
    const sends = [entryOf(1, { ...message, peer: 1 }), entryOf(2, { ...message, peer: 2, endedNs: 0 })];
    const receives = [entryOf(1, { ...message, flags: RecordFlag.inGroup, peer: 0 })];
    expect(operationsOf(replayOf([rankOf(0, sends), rankOf(1, receives), rankOf(2, [])]))).toMatchObject([
      { from: 0, to: 1, parts: [{ rank: 0 }, { rank: 1 }], missing: [] },
      { from: 0, to: 2, parts: [{ rank: 0 }], missing: [2] },
    ]);
  });

  test('many ranks have two columns of times, and those that are missing as ranges', () => {
    const ranks = Array.from({ length: 20 }, (_, rank) => rankOf(rank, rank < 9 ? [entryOf(1)] : []));
    const replay = replayOf(ranks, 20);
    const lines = replayText(replay, replayedCommunicators(replay), show).split('\n');
    expect(lines.find((line) => /began +ended/.test(line))).toMatch(
      /^ +operation +call +bytes +at +began +ended +last +missing$/,
    );
    expect(lines.at(-2)).toMatch(/\+0\.\.\+0 \(9\) +\+1\.\.\+1 \(9\) +\d +9-19$/);
  });
});

test('slices of a trace nest, and messages of a group are asynchronous', () => {
  const entry = entryOf(2, { collective: 8, flags: RecordFlag.send, peer: 1, operation: 1 });
  const overlapping = entryOf(4, { enqueuedNs: entryOf(3).startedNs, startedNs: entryOf(3).startedNs + 10 });
  const replay = replayOf([rankOf(0, [entryOf(1), entry, entryOf(3), overlapping, running(9)])]);
  const communicators = replayedCommunicators(replay);
  const { traceEvents } = JSON.parse(perfettoTrace(replay, communicators, latestNs(communicators)).text);
  const slices: { ts: number; dur: number }[] = traceEvents.filter(({ ph }: { ph: string }) => ph === 'X');
  for (const one of slices)
    for (const other of slices) {
      const isApart = other.ts >= one.ts + one.dur || one.ts >= other.ts + other.dur;
      const isInside = other.ts >= one.ts && other.ts + other.dur <= one.ts + one.dur;
      const isAround = one.ts >= other.ts && one.ts + one.dur <= other.ts + other.dur;
      expect(isApart || isInside || isAround).toBe(true);
    }
  const phases = traceEvents.map(({ ph }: { ph: string }) => ph).join('');
  expect(phases.replace(/^M+/, '')).toBe('XbeXbeX');
});

test('a trace splits a collective into wait and transfer, with arrows from the rank that came last', () => {
  const replay = replayOf([rankOf(0, [entryOf(1)]), rankOf(1, [late(1, 300)])], 2);
  const communicators = replayedCommunicators(replay);
  const { traceEvents } = JSON.parse(perfettoTrace(replay, communicators, latestNs(communicators)).text);
  const of = (name: string) => traceEvents.filter((event: { name: string }) => event.name === name);
  expect(of('wait')).toMatchObject([{ ph: 'X', tid: 1, dur: 0.3 }]);
  expect(of('transfer')).toMatchObject([{ ph: 'X', tid: 1, dur: 0.5 }]);
  expect(of('came last')).toMatchObject([
    { ph: 's', id: 1, tid: 2 },
    { ph: 'f', id: 1, tid: 1, bp: 'e' },
  ]);
});

test.each([
  ['lasts until the recorder was read while it runs', running(1), 5],
  ['lasts as long as it did where it has ended', entryOf(1), 0.8],
  ['has no duration where nobody saw its end', entryOf(1, { endedNs: 0, flags: RecordFlag.failed }), 0],
  ['has no duration where it has not begun', entryOf(1, { startedNs: 0, endedNs: 0 }), 0],
])('an operation of a trace %s', (_title, entry, microseconds) => {
  const replay = replayOf([rankOf(0, [entry])], 1);
  const { text } = perfettoTrace(replay, replayedCommunicators(replay), entryOf(1).startedNs + 5000);
  const { traceEvents } = JSON.parse(text);
  expect(traceEvents.filter(({ ph }: { ph: string }) => ph === 'X')).toMatchObject([{ dur: microseconds }]);
});

const short = (sequence: number): RecorderEntry => entryOf(sequence, { endedNs: entryOf(sequence).startedNs + 100 });

test('an arrow leads from the rank that came last to each that waited for it then, and to no other', () => {
  const ranks = [rankOf(0, [entryOf(1)]), rankOf(1, [late(1, 300)]), rankOf(2, [short(1)]), rankOf(3, [late(1, 300)])];
  const replay = replayOf(ranks, 4);
  const { text } = perfettoTrace(replay, replayedCommunicators(replay), 2e9);
  const { traceEvents } = JSON.parse(text);
  const arrows = traceEvents.filter(({ name }: { name: string }) => name === 'came last');
  expect(arrows.map(({ ph, tid }: { ph: string; tid: number }) => `${ph} ${tid}`)).toEqual(['s 2', 'f 1']);
});

test.each([
  [64, 126],
  [65, 0],
])('the trace of an operation of %i ranks has %i ends of arrows', (size, ends) => {
  const ranks = Array.from({ length: size }, (_, rank) => rankOf(rank, [rank === 5 ? late(1, 300) : entryOf(1)]));
  const replay = replayOf(ranks, size);
  const { traceEvents } = JSON.parse(perfettoTrace(replay, replayedCommunicators(replay), 2e9).text);
  expect(traceEvents.filter(({ name }: { name: string }) => name === 'came last')).toHaveLength(ends);
});

test('communicators of a rank have tracks of their own, and a trace has the last operations where there are too many', () => {
  const other = '00000000000000cd';
  const two = [{ index: 1, id: other, epoch: 0, size: 1, rank: 0, name: 'dp' }];
  const [, second] = [1, 2].map((sequence) => entryOf(sequence, { communicator: sequence - 1 }));
  if (second === undefined) throw new Error('there are two');
  const rank = rankOf(0, [entryOf(1), { ...second, startedNs: entryOf(1).startedNs + 10 }]);
  const replay = replayOf([{ ...rank, communicators: [...rank.communicators, ...two] }], 1);
  const groups = [...replay.communicators, { id: other, epoch: 0, name: 'dp', size: 1, members: '0' }];
  const communicators = replayedCommunicators({ ...replay, communicators: groups });
  const { text, omitted } = perfettoTrace(replay, communicators, latestNs(communicators));
  const slices = JSON.parse(text).traceEvents.filter(({ ph }: { ph: string }) => ph === 'X');
  expect({ omitted, tids: slices.map(({ tid }: { tid: number }) => tid) }).toEqual({ omitted: 0, tids: [2, 1] });
  expect(perfettoTrace(replay, communicators, latestNs(communicators), 1).omitted).toBe(1);
});

function answer(to: RecorderReader, host: string, request: number, answers: readonly RecorderAnswer[]): void {
  for (const one of answers) to.receive(host, makeFrame(FrameKind.recorder, { request, payload: encodeJson(one) }));
}

const answersOf = (rank: number): RecorderAnswer[] => {
  const { host: _host, clock: _clock, entries, replays: _replays, ...facts } = rankOf(rank, [entryOf(1)]);
  return [{ type: 'process', ...facts, entries: encodeColumns(entries) }, { type: 'end' }];
};

describe('gathering from agents', () => {
  const hosts = [0, 1].map((rank) => ({ name: `node${rank}`, ranks: [rank] }));

  function reader(
    wantsAll = false,
    answersClock: ReadonlySet<string> = new Set(['node0', 'node1']),
  ): { reader: RecorderReader; sent: Frame[] } {
    const sent: Frame[] = [];
    const clocks = answeredClocks((host) => (answersClock.has(host) ? 0n : null));
    const send = (_host: string, frame: Frame): void => void sent.push(frame);
    return { reader: new RecorderReader({ isWanted: true, wantsAll, hosts: () => hosts, clocks, send }), sent };
  }

  test('the reader asks for all operations of the blamed rank and of ten others', async () => {
    const { reader: made, sent } = reader();
    const read = made.read([1]);
    expect(sent.map(({ payload }) => JSON.parse(Buffer.from(payload).toString()))).toEqual([
      { last: 256, full: [1, 0] },
      { last: 256, full: [1, 0] },
    ]);
    answer(made, 'node1', 1, answersOf(1));
    answer(made, 'node0', 1, answersOf(0));
    const file = join(directory, 'report.json');
    const recorder = await read;
    expect(recorder).toMatchObject({
      communicators: [{ id, size: 3, name: 'tp0', members: '0-1' }],
      hosts: [
        { host: 'node0', clock: {} },
        { host: 'node1', clock: {} },
      ],
    });
    writeFileSync(file, JSON.stringify({ schemaVersion: 1, recorder }));
    expect(readReplay(file).ranks.map(({ host, entries }) => [host, entries])).toEqual([
      ['node0', [entryOf(1)]],
      ['node1', [entryOf(1)]],
    ]);
  });

  test('the reader asks for all operations of every rank where --record all was given', () => {
    const { reader: made, sent } = reader(true);
    void made.read([]);
    expect(sent.map(({ payload }) => JSON.parse(Buffer.from(payload).toString()).last)).toEqual([4096, 4096]);
    made.close();
  });

  test('a silent agent is named after two seconds and not waited for', async () => {
    vi.useFakeTimers();
    const { reader: made } = reader(false, new Set(['node0']));
    const read = made.read([]);
    answer(made, 'node0', 1, answersOf(0));
    await vi.advanceTimersByTimeAsync(2000);
    expect((await read).hosts[1]).toEqual({ host: 'node1', clock: null });
  });

  test('a later answer with fewer ranks does not replace an earlier one', async () => {
    const { reader: made } = reader();
    made.failed([0]);
    for (const rank of [0, 1]) answer(made, `node${rank}`, 1, answersOf(rank));
    made.failed([1]);
    answer(made, 'node0', 2, answersOf(0));
    made.close();
    expect((await made.taken)?.ranks.map(({ rank }) => rank)).toEqual([0, 1]);
  });
});

test.each([
  ['{', 'cannot be read'],
  ['{"schemaVersion":1}', 'nothing went wrong in that job'],
  ['{"schemaVersion":2}', 'schemaVersion'],
  ['{"schemaVersion":1,"recorder":{"schemaVersion":1}}', 'recorder.takenAt'],
])('the file %s is refused with a sentence', (text, sentence) => {
  const file = join(directory, 'wrong.json');
  writeFileSync(file, text);
  expect(() => readReplay(file)).toThrow(sentence);
});

test.each([
  ['that ended', 0, 0],
  ['that failed', RecordFlag.failed, 1],
])('the text of an operation %s says so', (_which, flags, times) => {
  const replay = replayOf([rankOf(0, [entryOf(1, { flags })])], 1);
  expect(replayText(replay, replayedCommunicators(replay), show).split(' failed')).toHaveLength(1 + times);
});
