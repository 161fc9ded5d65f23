import { PassThrough } from 'node:stream';
import { describe, expect, test } from 'vitest';
import { Lease } from '../../control/link/lease.ts';
import type { Link } from '../../control/link/link.ts';
import { MemoryLink } from '../../control/link/memory-link.ts';
import { StreamLink } from '../../control/link/stream-link.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';

/** Opens a link and collects what arrives; `closed` resolves to the problem. */
function listen(link: Link) {
  const subjects: number[] = [];
  const { promise: closed, resolve } = Promise.withResolvers<string | null>();
  link.open({ frame: (frame) => subjects.push(frame.subject), closed: resolve });
  return { subjects, closed };
}

function streamPair(): [StreamLink, StreamLink, PassThrough] {
  const [there, back] = [new PassThrough(), new PassThrough()];
  return [new StreamLink(back, there), new StreamLink(there, back), there];
}

const beat = (subject: number) => makeFrame(FrameKind.heartbeat, { subject });

describe.each([
  ['in memory', () => MemoryLink.pair()],
  ['over streams', () => streamPair()],
])('a link %s', (_name, make: () => readonly [Link, Link, ...unknown[]]) => {
  test('frames arrive in order, also those sent before the other side opened', async () => {
    const [one, other] = make();
    listen(one);
    for (let subject = 0; subject < 100; subject++) one.send(beat(subject));
    const { subjects, closed } = listen(other);
    one.send(beat(100));
    one.close();
    one.send(beat(101));
    expect(await closed).toBeNull();
    expect(subjects).toEqual(Array.from({ length: 101 }, (_, index) => index));
  });

  test('a handler never runs while another one runs', async () => {
    const [one, other] = make();
    let inside = 0;
    const { promise: done, resolve } = Promise.withResolvers<void>();
    const ping = (link: Link) => (frame: { subject: number }) => {
      expect(inside).toBe(0);
      inside += 1;
      if (frame.subject === 20) resolve();
      else link.send(beat(frame.subject + 1));
      inside -= 1;
    };
    one.open({ frame: ping(one), closed() {} });
    other.open({ frame: ping(other), closed() {} });
    one.send(beat(0));
    await done;
  });
});

describe('a link over streams', () => {
  test('a large payload arrives complete', async () => {
    const [one, other] = streamPair();
    listen(one);
    const { promise, resolve } = Promise.withResolvers<number>();
    other.open({ frame: (frame) => resolve(frame.payload.length), closed() {} });
    one.send(makeFrame(FrameKind.output, { payload: new Uint8Array(1_000_000) }));
    expect(await promise).toBe(1_000_000);
  });

  test('garbage closes the link with a message, and earlier frames still count', async () => {
    const [one, other, stream] = streamPair();
    listen(one);
    const { subjects, closed } = listen(other);
    one.send(beat(1));
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
    stream.write('Welcome to host h1!\nLast login: yesterday\n');
    expect(await closed).toBe('it sent text, which is no frame: "Welcome to host h1!"');
    expect(subjects).toEqual([1]);
  });

  test('an end inside a frame is an error', async () => {
    const [one, other, stream] = streamPair();
    listen(one);
    const { closed } = listen(other);
    stream.end(Buffer.from([9, 0, 0]));
    expect(await closed).toMatch(/inside a frame/);
  });
});

/** A lease on a clock of our own: `tick(ms)` lets time pass and the timer fire. */
function leaseOn(leaseMs: number) {
  let time = 0;
  let beats = 0;
  const silences: number[] = [];
  const lease = new Lease({
    heartbeatMs: 1000,
    leaseMs,
    sendHeartbeat: () => (beats += 1),
    onSilent: (silentMs) => silences.push(silentMs),
    now: () => time,
  });
  const tick = (milliseconds = 1000) => {
    time += milliseconds;
    lease.tick();
  };
  return { lease, tick, silences, beats: () => beats };
}

describe('a lease', () => {
  test('the lease expires once and reports the duration of the silence', () => {
    const { tick, silences, lease, beats } = leaseOn(3000);
    for (let second = 0; second < 3; second++) tick();
    expect(silences).toEqual([]);
    tick();
    expect(silences).toEqual([4000]);
    expect(beats()).toBe(4);
    lease.stop();
  });

  test('any sign of life renews the lease', () => {
    const { tick, silences, lease } = leaseOn(3000);
    for (let second = 0; second < 30; second++) {
      tick();
      if (second % 3 === 2) lease.renew();
    }
    expect(silences).toEqual([]);
    lease.stop();
  });

  test('a blocked event loop of our own does not expire the lease', () => {
    const { tick, silences, lease } = leaseOn(3000);
    for (let block = 0; block < 10; block++) {
      tick(20_000);
      lease.renew();
    }
    tick(60_000);
    expect(silences).toEqual([]);
    for (let second = 0; second < 4; second++) tick();
    expect(silences).toHaveLength(1);
    lease.stop();
  });

  test('a suspended lease never expires, and a resumed one starts over', () => {
    const { tick, silences, lease } = leaseOn(3000);
    lease.suspend();
    for (let second = 0; second < 30; second++) tick();
    lease.resume();
    for (let second = 0; second < 3; second++) tick();
    expect(silences).toEqual([]);
    tick();
    expect(silences).toHaveLength(1);
    lease.stop();
  });
});
