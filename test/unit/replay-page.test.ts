/** The page of ncclrun replay --html: its data, what of it a browser may take for markup, and what it takes apart again. */
import { describe, expect, test } from 'vitest';
import { RecordFlag } from '../../control/messages/recorder.ts';
import { alignedCommunicators } from '../../launcher/replay/clocks.ts';
import { replayedCommunicators } from '../../launcher/replay/operations.ts';
import { pageData, pageOf } from '../../launcher/replay/page-data.ts';
import type { Replay } from '../../launcher/replay/read-file.ts';
import { bytesText, firstDifference, rangesText, timeText, unpack } from '../../page/model.ts';
import { entryOf } from '../rig/recorded.ts';
import { recordedRank, recordedReplay } from '../rig/replayed.ts';

const template = '<title><!--title--></title><script type="application/json"><!--data--></script>';

function jitter(rank: number, sequence: number): number {
  return (rank * 7919 + sequence * 104_729) % 60_000;
}

function pageFor(replay: Replay, redact = false) {
  return pageData(replay, replayedCommunicators(replay), { redact });
}

describe('the data of a page', () => {
  test('a communicator named <script> and a host named so end no element', () => {
    const name = '</script><script>alert(1)</script>';
    const rank = recordedRank(0, [entryOf(1)], { host: '<!--<script>' });
    const replay = recordedReplay([rank], { name });
    const page = pageOf(template, pageFor(replay));
    expect(page.match(/<\/?\w+/g)).toEqual(['<title', '</title', '<script', '</script']);
    const json = /json">(.*)<\/script>/s.exec(page)?.[1] ?? '';
    expect(JSON.parse(json)).toMatchObject({ communicators: [{ name }], hosts: [{ host: '<!--<script>' }] });
  });

  test('a dollar sign in the data is no pattern of a replacement', () => {
    const page = pageOf(template, pageFor(recordedReplay([recordedRank(0, [entryOf(1)])], { name: "$&$'$`" })));
    expect(page).toContain(JSON.stringify("$&$'$`"));
  });

  test('operations come out of the page as they went in', async () => {
    const sends = { collective: 8, flags: RecordFlag.send, peer: 1, operation: 1 };
    const graph = entryOf(1, { flags: RecordFlag.replay, stream: 2, operation: 7 });
    const ranks = [
      recordedRank(0, [entryOf(1), entryOf(2, { endedNs: 0, lastPeer: 1 }), entryOf(3, sends)], {
        replays: [{ oldest: 1, entries: [graph] }],
      }),
      recordedRank(1, [entryOf(1, { startedNs: entryOf(1).startedNs + 500 })], { gpuErrorNs: 900 }),
    ];
    const [group] = await unpack(pageFor(recordedReplay(ranks)));
    expect(group?.ranks).toEqual([0, 1]);
    const summary = group?.operations.map(({ number, call, bytes, missing, last }) => [
      number,
      call,
      bytes,
      missing,
      last,
    ]);
    expect(summary).toEqual([
      ['1', 'allReduce float32 sum', 16, [], 1],
      ['g7.2', 'allReduce float32 sum', 16, [1], null],
      ['2', 'allReduce float32 sum', 16, [1], null],
      ['1', 'message float32', 16, [], null],
    ]);
    const [first, , second, message] = group?.operations ?? [];
    expect(first).toMatchObject({
      begin: 0,
      arrived: 6,
      parts: [
        { rank: 0, state: 'ended', start: 1, end: 9, waitsFor: null },
        { rank: 1, state: 'ended', start: 6, end: 9 },
      ],
    });
    expect(second?.parts).toEqual([{ rank: 0, state: 'running', start: 11, end: null, waitsFor: 1 }]);
    expect(message).toMatchObject({ isMessage: true, from: 0, to: 1 });
    expect(group === undefined ? null : firstDifference(group)).toBe(1);
  });

  test('failures are in it in the words of the terminal, and redacting leaves no name of a host', () => {
    const failure = {
      type: 'agent',
      host: 'node1.example',
      message: 'node1.example and node1.example.org differ',
      phase: 'connect',
      remedy: 'see node1.example',
    } as const;
    const replay = {
      ...recordedReplay([recordedRank(0, [entryOf(1)], { host: 'node1.example' })]),
      failures: [failure],
    };
    expect(pageFor(replay).verdicts).toMatchObject([
      { sentence: expect.stringContaining('node1.example: '), details: [] },
    ]);
    const page = pageFor(replay, true);
    expect(page.verdicts).toEqual([
      {
        sentence: 'host 1: host 1 and node1.example.org differ (connect)',
        details: [],
        remedy: 'see host 1',
      },
    ]);
    expect(page.hosts).toMatchObject([{ host: 'host 1' }]);
  });

  test('1,024 ranks with 256 operations each take less than 5 MB', () => {
    const ranks = Array.from({ length: 1024 }, (_, rank) =>
      recordedRank(
        rank,
        Array.from({ length: 256 }, (_, index) => {
          const entry = entryOf(index + 1);
          const by = jitter(rank, index);
          return { ...entry, startedNs: entry.startedNs + by, endedNs: entry.endedNs + 100_000 + (by % 5000) };
        }),
      ),
    );
    const data = pageFor(recordedReplay(ranks));
    expect(JSON.stringify(data).length).toBeLessThan(4_500_000);
    expect(data.omitted).toBe(0);
  });
});

/** All-reduces that end at the same moment, at a host whose clock was read to be `by` further than it is. */
function ends(by: number, errorNs: number): Replay {
  const entries = Array.from({ length: 20 }, (_, index) => entryOf(index + 1));
  const later = entries.map((entry) => ({
    ...entry,
    enqueuedNs: entry.enqueuedNs + by,
    startedNs: entry.startedNs + by,
    endedNs: entry.endedNs + by,
  }));
  return recordedReplay([recordedRank(0, entries), recordedRank(1, later, { clock: { offsetNs: 0, errorNs } })]);
}

describe('clocks of hosts', () => {
  test('the ends of all-reduces bring the clocks of two hosts together', () => {
    const { replay, communicators } = alignedCommunicators(ends(40_000, 50_000));
    expect(replay.ranks[1]?.clock).toEqual({ offsetNs: 40_000, errorNs: 1 });
    expect(communicators[0]?.operations[0]?.parts.map(({ endedNs }) => endedNs)).toEqual([
      1_000_001_900, 1_000_001_900,
    ]);
  });

  test('a correction stays within the error of the reading', () => {
    expect(alignedCommunicators(ends(40_000, 3000)).replay.ranks[1]?.clock).toEqual({ offsetNs: 3000, errorNs: 1 });
  });
});

test('ranges, times and sizes are written for people', () => {
  expect(rangesText([0, 1, 2, 7, 9, 10])).toBe('0-2,7,9-10');
  expect([5, 1234, 56_000, 40_000_000].map(timeText)).toEqual(['0.5 µs', '123 µs', '5.60 ms', '4.000 s']);
  expect([16, 1536, 1 << 30].map(bytesText)).toEqual(['16 B', '1.5 KiB', '1 GiB']);
});
