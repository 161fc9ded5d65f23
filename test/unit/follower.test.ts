/** What a reader of `ncclrun logs -f` gets: output as long as the reader takes it, what was left out, and the end of the job. */
import { Socket } from 'node:net';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { JobResult } from '../../launcher/model/types.ts';
import { FollowFrames, FollowKind, type FollowRequest } from '../../launcher/jobs/follow-wire.ts';
import { Follower } from '../../launcher/jobs/follower.ts';
import { turn } from '../rig/scripted-host.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] }));
afterEach(() => void vi.useRealTimers());

const names = new Map<number, string>(Object.entries(FollowKind).map(([name, kind]) => [kind, name]));

function resultOf(exitCode: number): JobResult {
  return {
    schemaVersion: 1,
    jobId: 'j',
    ok: true,
    reason: 'ok',
    exitCode,
    restarts: 0,
    failures: [],
    verdicts: [],
    hosts: [],
    ranks: [],
    phases: { allocate: 0, connect: 0, hello: 0, spawn: 0, run: 0, teardown: 0 },
  };
}

function chunk(bytes: Uint8Array | string, rank = 0) {
  return { rank, host: 'a', stream: 'stdout', time: 1, bytes: Buffer.from(bytes), partial: false } as const;
}

/** All has happened that needs no timer. */
async function settle(): Promise<void> {
  for (let turns = 0; turns < 20; turns += 1) await turn();
}

/** A reader that takes nothing unless the test says so. */
function reader(changes: Partial<FollowRequest> = {}) {
  const waiting: (() => void)[] = [];
  const frames = new FollowFrames();
  const seen: string[] = [];
  const socket = Object.assign(new Socket(), {
    write(frame: Uint8Array, done: () => void): boolean {
      for (const { kind, payload } of frames.push(Buffer.from(frame))) {
        const text = Buffer.from(payload).toString('latin1');
        seen.push(`${names.get(kind)} ${kind === FollowKind.ended ? payload[0] : text}`.trim().slice(0, 100));
      }
      waiting.push(done);
      return true;
    },
  });
  const request: FollowRequest = {
    key: '',
    follows: true,
    kept: true,
    ranks: null,
    stdoutIsTerminal: false,
    stderrIsTerminal: false,
    columns: null,
    environment: {},
    ...changes,
  };
  const follower = new Follower(socket, request, { tagOutput: 'auto', timestampOutput: false, onHang: 'report' });
  let isOver = false;
  return {
    follower,
    socket,
    seen,
    isOver: () => isOver,
    begin(dropped = 0, ...texts: readonly string[]): void {
      const started = { type: 'job-started', time: 1, jobId: 'j', ranks: 2, hosts: ['a'], programs: [['p']] } as const;
      follower.begin({ started, dropped, pieces: texts.map((text) => ({ type: 'output', chunk: chunk(text) })) });
    },
    /** It takes one frame. */
    async take(): Promise<void> {
      waiting.shift()?.();
      await settle();
    },
    /** It takes all frames, also those that follow meanwhile. */
    async takeAll(): Promise<void> {
      await settle();
      while (waiting.length > 0) {
        waiting.shift()?.();
        await settle();
      }
    },
    async end(result: JobResult | null): Promise<void> {
      void follower.end(result).then(() => (isOver = true));
      await settle();
    },
  };
}

it('a reader who has taken everything gets the status of the job, however long nothing was written', async () => {
  const one = reader();
  one.begin(0, 'early\n');
  await one.takeAll();
  vi.advanceTimersByTime(60_000);
  await one.end(resultOf(3));
  expect([one.isOver(), one.socket.destroyed]).toEqual([false, false]);
  await one.takeAll();
  expect([one.isOver(), one.socket.destroyed]).toEqual([true, true]);
  expect(one.seen).toEqual(['begun', 'stdout [0] early', 'ended 3']);
});

it('the end of a job waits for a slow reader as long as it takes something', async () => {
  const one = reader();
  one.begin();
  await one.takeAll();
  for (const text of ['a\n', 'b\n', 'c\n']) {
    one.follower.output(chunk(text));
    await settle();
  }
  await one.end(resultOf(0));
  for (let taken = 0; taken < 2; taken += 1) {
    vi.advanceTimersByTime(100);
    await settle();
    expect(one.isOver()).toBe(false);
    await one.take();
  }
  await one.takeAll();
  expect(one.isOver()).toBe(true);
  expect(one.seen.slice(1).join(' ')).toBe('stdout [0] a stdout [0] b\n[0] c ended 0');
});

it('the end of a job does not wait for a reader that takes nothing for more than 100 ms', async () => {
  const one = reader();
  one.begin();
  await one.takeAll();
  one.follower.output(chunk('a\n'));
  await one.end(resultOf(0));
  vi.advanceTimersByTime(100);
  await settle();
  expect(one.isOver()).toBe(false);
  vi.advanceTimersByTime(25);
  await settle();
  expect([one.isOver(), one.socket.destroyed]).toEqual([true, true]);
});

it('the end of a job does not wait for a reader that had stalled before', async () => {
  const one = reader();
  one.begin();
  one.follower.output(chunk('a\n'));
  await settle();
  vi.advanceTimersByTime(101);
  await one.end(resultOf(0));
  expect([one.isOver(), one.socket.destroyed]).toEqual([true, true]);
});

it('a reader that asks for the output so far gets it at its own pace, unless it leaves', async () => {
  const [patient, gone] = [reader({ follows: false }), reader({ follows: false })];
  for (const one of [patient, gone]) {
    one.begin(0, 'a\n');
    await one.end(null);
  }
  vi.advanceTimersByTime(60_000);
  gone.socket.destroy();
  await settle();
  expect([patient.isOver(), gone.isOver()]).toEqual([false, true]);
  await patient.takeAll();
  expect([patient.isOver(), patient.seen.at(-1)]).toEqual([true, 'shown']);
});

it('a reader learns how much output is not kept, and gets none that came before where it wants only what follows', async () => {
  const [all, later] = [reader(), reader({ kept: false })];
  for (const one of [all, later]) {
    one.begin(7, 'early\n');
    await one.takeAll();
    one.follower.output(chunk('late\n', 1));
    await one.takeAll();
  }
  expect(all.seen).toEqual([
    'begun',
    'stderr ncclrun: 7 bytes of output came before this and are not kept',
    'stdout [0] early',
    'stdout [1] late',
  ]);
  expect(later.seen).toEqual(['begun', 'stdout [1] late']);
});

it('a reader gets the output of the ranks that it names', async () => {
  const one = reader({ ranks: [{ first: 1, last: 1 }] });
  one.begin();
  one.follower.output(chunk('of 0\n', 0));
  one.follower.output(chunk('of 1\n', 1));
  await one.takeAll();
  expect(one.seen).toEqual(['begun', 'stdout [1] of 1']);
});

it('four MiB of output wait for a reader, and it learns how much more was left out', async () => {
  const one = reader();
  one.begin();
  await one.takeAll();
  const mebibyte = Buffer.alloc(2 ** 20, `${'x'.repeat(1023)}\n`);
  for (let count = 0; count < 4; count += 1) one.follower.output(chunk(mebibyte));
  one.follower.output(chunk('y\n'));
  one.follower.output(chunk('zz\n'));
  await one.takeAll();
  const notes = one.seen.filter((frame) => frame.startsWith('stderr'));
  expect(notes).toEqual(['stderr ncclrun: 5 bytes of output are left out here: this reader was too slow for them']);
  one.follower.output(chunk('later\n'));
  await one.takeAll();
  expect(one.seen.at(-1)).toBe('stdout [0] later');
});
