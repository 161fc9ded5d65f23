/** How well the launcher knows the clocks of other hosts. */
import { afterEach, describe, expect, it, vi } from 'vitest';
import { clockId } from '../../control/clock-id.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import { encodeClock } from '../../control/messages/payload.ts';
import { CLOCK_DRIFT, ClockBounds } from '../../launcher/clocks/bounds.ts';
import type { ClockReading } from '../../launcher/clocks/bounds.ts';
import { HostClocks } from '../../launcher/clocks/host-clocks.ts';
import { seededRandom } from '../rig/random.ts';

afterEach(() => void vi.useRealTimers());

/** A clock that is ahead, runs at another speed, and answers over ways of unlike length. */
function played(seed: number) {
  const random = seededRandom(seed);
  const part = (): number => random(1_000_000) / 1_000_000;
  const aheadNs = (part() - 0.5) * 1e12;
  const drift = (2 * part() - 1) * CLOCK_DRIFT;
  const [thereNs, backNs] = [20_000 + part() * 200_000, 20_000 + part() * 200_000];
  const jitter = (): number => -Math.log(1 - part() * 0.999) * 300_000;
  return {
    offsetAt: (ns: number): number => aheadNs + ns * drift,
    reading(askedNs: number): ClockReading {
      const readNs = askedNs + thereNs + jitter();
      return { askedNs, itsNs: readNs + aheadNs + readNs * drift, answeredNs: readNs + backNs + jitter() };
    },
    bestNs: thereNs + backNs,
  };
}

describe('bounds of a clock', () => {
  it('bounds of skewed clocks with jitter on the way never exclude the truth, and come near to the quickest round trip', () => {
    for (let seed = 1; seed <= 200; seed++) {
      const clock = played(seed);
      const bounds = new ClockBounds(clock.reading(0));
      for (let window = 0; window < 10; window++) {
        let nowNs = window * 20e9;
        for (let trip = 0; trip < 16; trip++) {
          const reading = clock.reading(nowNs);
          bounds.add(reading);
          nowNs = reading.answeredNs;
        }
        const { offsetNs, errorNs } = bounds.at(nowNs);
        expect(Math.abs(offsetNs - clock.offsetAt(nowNs))).toBeLessThanOrEqual(errorNs + 1);
        expect(errorNs).toBeLessThanOrEqual(clock.bestNs / 2 + 200_000);
        const later = bounds.at(nowNs + 10e9);
        expect(Math.abs(later.offsetNs - clock.offsetAt(nowNs + 10e9))).toBeLessThanOrEqual(later.errorNs + 1);
      }
    }
  });

  it('a clock that jumps is known again with the next reading', () => {
    const bounds = new ClockBounds({ askedNs: 0, answeredNs: 100, itsNs: 5050 });
    bounds.add({ askedNs: 1000, answeredNs: 1100, itsNs: 900_000_000 });
    expect(bounds.at(1100)).toEqual({ offsetNs: 900_000_000 - 1050, errorNs: 50 });
  });
});

function clocks(idOf: (host: string) => string | null, answer: (frame: Frame, host: string) => void): HostClocks {
  return new HostClocks({ ownId: 'ours', idOf, send: (host, frame) => answer(frame, host) });
}
const stamp = (request: number, ahead: bigint): Frame =>
  makeFrame(FrameKind.clock, { request, payload: encodeClock(process.hrtime.bigint() + ahead) });

describe('the clocks of hosts', () => {
  it('the quickest round trip tells a clock', async () => {
    vi.useFakeTimers({ toFake: ['hrtime'] });
    let trips = 0;
    const made: HostClocks = clocks(
      () => null,
      ({ request }) => {
        const halfMs = Math.max(30, 100 - 10 * trips++) / 1000;
        vi.advanceTimersByTime(halfMs);
        const answer = stamp(request, 1_000_000n);
        vi.advanceTimersByTime(halfMs);
        queueMicrotask(() => made.receive('h1', answer));
      },
    );
    await made.read(['h1']);
    expect(trips).toBe(6);
    expect(made.of('h1')).toMatchObject({ offsetNs: 1_000_000, drift: CLOCK_DRIFT });
    expect(made.of('h1')?.errorNs).toBeLessThanOrEqual(50_000);
  });

  it('a clock of which every reading takes long is read 16 times', async () => {
    vi.useFakeTimers({ toFake: ['hrtime'] });
    let trips = 0;
    const made: HostClocks = clocks(
      () => null,
      ({ request }) => {
        trips += 1;
        vi.advanceTimersByTime(10);
        queueMicrotask(() => made.receive('h1', stamp(request, 0n)));
      },
    );
    await made.read(['h1']);
    expect(trips).toBe(16);
  });

  it('the clocks of eight hosts are read at once, and the others as soon as one of them is known', async () => {
    const asked: (readonly [host: string, request: number])[] = [];
    const made = clocks(
      (host) => `clock of ${host}`,
      ({ request }, host) => void asked.push([host, request]),
    );
    const hosts = Array.from({ length: 10 }, (_, index) => `h${index}`);
    const read = made.read(hosts);
    expect(asked.map(([host]) => host)).toEqual(hosts.slice(0, 8));
    const [, request = 0] = asked[3] ?? [];
    made.receive('h3', makeFrame(FrameKind.clock, { request, payload: encodeClock(process.hrtime.bigint()) }));
    made.close();
    await read;
    expect(new Set(asked.map(([, number]) => number)).size).toBe(asked.length);
  });

  it('hosts that read the same clock as the launcher have it exactly, once a reading does not exclude it', async () => {
    let ahead = 0n;
    const made: HostClocks = clocks(
      (host) => (host === 'other' ? 'theirs' : 'ours'),
      ({ request }, host) => queueMicrotask(() => made.receive(host, stamp(request, ahead))),
    );
    expect(made.of('h1')).toBeNull();
    await made.read(['h1', 'h2', 'other']);
    expect(made.of('h2')).toMatchObject({ id: 'ours', offsetNs: 0, errorNs: 0, drift: 0 });
    expect(made.of('other')?.errorNs).toBeGreaterThan(0);
    ahead = 5_000_000_000n; // a copy of the virtual machine
    await made.read(['h1']);
    expect(Math.abs((made.of('h1')?.offsetNs ?? 0) - 5e9)).toBeLessThan(1e9);
  });

  it('a silent host is asked once and not waited for', async () => {
    vi.useFakeTimers();
    const asked: string[] = [];
    const made = clocks(
      () => null,
      (_, host) => void asked.push(host),
    );
    const read = made.read(['h1', 'h2']);
    await vi.advanceTimersByTimeAsync(1000);
    await read;
    expect([asked, made.of('h1')]).toEqual([['h1', 'h2'], null]);
  });

  it('answers of a host to a question that another one was asked, or after the end, count for nothing', async () => {
    const requests: number[] = [];
    const made = clocks(
      () => null,
      ({ request }) => void requests.push(request),
    );
    const read = made.read(['h1']);
    made.receive('h2', stamp(requests[0] ?? 0, 0n));
    expect(made.of('h2')).toBeNull();
    made.close();
    await read;
    await made.read(['h1']);
    expect([requests.length, made.of('h1')]).toEqual([1, null]);
  });
});

it('processes of one kernel and time namespace have the same clock', () => {
  expect(clockId()).toBe(clockId());
  expect(clockId()).toMatch(/^[0-9a-f-]{36} /);
});
