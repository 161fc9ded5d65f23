/** What an agent makes of the kernel's log and of NVML: errors of its ranks' GPUs, each once, with the rank that they concern. */
import { mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { monotonicMs } from '../../control/clock.ts';
import type { HostGpu, Xid } from '../../control/messages/gpu.ts';
import { KernelLog } from '../../worker/agent/kernel-log.ts';
import type { XidNative } from '../../worker/agent/xid-source.ts';
import { watchXids, type XidWatch } from '../../worker/agent/xid-watch.ts';
import { isOpen, pipe } from '../rig/pipe.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-xid-'));
afterAll(() => rmSync(directory, { recursive: true }));
/** A machine with two GPUs; in `inside` the kernel's process numbers are not those of the agent. */
const [machine, inside] = ['machine', 'container'].map((name, index) => {
  const root = join(directory, name);
  for (const gpu of ['0000:1B:00.0', '0000:3b:00.0'])
    mkdirSync(join(root, 'proc/driver/nvidia/gpus', gpu), { recursive: true });
  mkdirSync(join(root, 'proc/self/ns'), { recursive: true });
  symlinkSync(`pid:[${4_026_531_836 + index}]`, join(root, 'proc/self/ns/pid'));
  return root;
});

/** What stands for the kernel's log: reads do not wait. */
function logPipe() {
  const { mine: descriptor, its } = pipe(directory);
  return { descriptor, write: (text: string) => writeSync(its, text) };
}

describe("the kernel's log", () => {
  test('each read gives what has come since, without what is no record', () => {
    const { descriptor, write } = logPipe();
    const log = new KernelLog({ kernelLogOpen: () => descriptor });
    expect(log.read()).toEqual([]);
    write('4,1,5000,-;one\n');
    expect(log.read()).toEqual([{ sinceBootMs: 5, text: 'one' }]);
    write('nonsense');
    expect(log.read()).toEqual([]);
    write('4,2,6000,-;two\n');
    expect(log.read()).toEqual([{ sinceBootMs: 6, text: 'two' }]);
    log.close();
    expect(isOpen(descriptor)).toBe(false);
    log.close();
    expect(log.read()).toEqual([]);
  });

  test('a log that cannot be read any more is closed', () => {
    const descriptor = openSync(directory, 'r');
    const log = new KernelLog({ kernelLogOpen: () => descriptor });
    expect(log.read()).toEqual([]);
    expect(isOpen(descriptor)).toBe(false);
  });
});

const noEvents: ReturnType<XidNative['xidEventsOpen']> = Object.create(null);
const open: XidWatch[] = [];
beforeEach(() => void vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] }));
afterEach(() => {
  for (const one of open.splice(0)) one.stop();
  vi.useRealTimers();
});

const first: HostGpu = { index: 0, address: '0000:1b:00.0' };
const second: HostGpu = { index: 1, address: '0000:3b:00.0' };

/** Of ranks 4 and 5, which have one GPU each, and rank 6, which shares the second. */
function watched({
  root = machine,
  gpus = new Map([
    [4, first],
    [5, second],
    [6, second],
  ]),
} = {}) {
  const { descriptor, write } = logPipe();
  const seen: Xid[] = [];
  const native: XidNative = {
    kernelLogOpen: () => descriptor,
    xidEventsOpen: () => noEvents,
    xidEventsTake: () => [],
    xidEventsClose: () => {},
  };
  const watch = watchXids({ native, gpus, report: (xid) => seen.push(xid), ...(root === undefined ? {} : { root }) });
  if (watch === null) throw new Error('there are GPUs to watch');
  open.push(watch);
  const log = (address: string, code: number, pid: number | null, at = monotonicMs()) =>
    write(
      `4,1,${Math.round(at * 1000)},-;NVRM: Xid (PCI:${address}): ${code}, pid=${pid ?? '<unknown>'}, name=x, bad.\n`,
    );
  return { watch, seen, log, descriptor };
}

describe('errors of GPUs', () => {
  test('nothing is watched where no rank has a GPU', () => {
    const native: XidNative = Object.create(null);
    expect(watchXids({ native, gpus: new Map(), report: () => {} })).toBeNull();
  });

  test('an error concerns the ranks that own the GPU, and is reported once', () => {
    const { seen, log, watch } = watched();
    const begun = Date.now();
    log('0000:3b:00', 79, null);
    vi.advanceTimersByTime(250);
    const error = { code: 79, gpu: 1, address: '0000:3b:00.0', ranks: [5, 6], pid: null, message: 'bad' };
    expect(seen).toEqual([{ ...error, time: expect.any(Number) }]);
    expect(seen[0]?.time).toBeGreaterThanOrEqual(begun - 1);
    expect(seen[0]?.time).toBeLessThanOrEqual(Date.now());
    log('0000:3b:00', 79, null);
    watch.look();
    expect(seen).toHaveLength(1);
    log('0000:3b:00', 31, null);
    watch.look();
    log('0000:1b:00', 79, null);
    watch.look();
    expect(seen.slice(1).map(({ code, gpu, ranks }) => [code, gpu, ranks])).toEqual([
      [31, 1, [5, 6]],
      [79, 0, [4]],
    ]);
  });

  test('a GPU that no rank has, or that the host does not list, is nobody’s', () => {
    const { seen, log, watch } = watched({ gpus: new Map([[4, first]]) });
    for (const address of ['0000:3b:00', '0000:77:00']) {
      log(address, 79, null);
      watch.look();
    }
    expect(seen).toEqual([]);
  });

  test('the process that the driver names says which rank it is, where its number is one of this host', () => {
    const here = watched();
    here.watch.spawned(5, process.pid);
    here.log('0000:3b:00', 13, process.pid);
    here.watch.look();
    here.log('0000:3b:00', 13, 1);
    here.watch.look();
    expect(here.seen.map(({ ranks, pid }) => [ranks, pid])).toEqual([
      [[5], process.pid],
      [[5, 6], 1],
    ]);
    const elsewhere = watched({ root: inside });
    elsewhere.watch.spawned(5, process.pid);
    elsewhere.log('0000:3b:00', 13, process.pid);
    elsewhere.watch.look();
    expect(elsewhere.seen.map(({ ranks }) => ranks)).toEqual([[5, 6]]);
  });

  test('an error has the time of its record, but none outside of the two looks at the log', () => {
    vi.useRealTimers();
    vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'Date'] });
    const { seen, log, watch } = watched();
    const begun = Date.now();
    vi.setSystemTime(begun + 10_000);
    log('0000:1b:00', 1, null, monotonicMs() - 4000);
    watch.look();
    vi.setSystemTime(begun + 20_000);
    log('0000:1b:00', 2, null, monotonicMs() - 12_000);
    watch.look();
    log('0000:1b:00', 3, null, monotonicMs() + 60_000);
    watch.look();
    const [one = 0, ...others] = seen.map(({ time }) => time - begun);
    expect(Math.abs(one - 6000)).toBeLessThan(1000);
    expect(others).toEqual([10_000, 20_000]);
  });

  test('a broken GPU is reported 64 times at most', () => {
    const { seen, log, watch } = watched();
    for (let code = 0; code < 80; code++) {
      log('0000:1b:00', code, null);
      watch.look();
    }
    expect(seen).toHaveLength(64);
  });

  test('the end closes the log, and nothing is looked at any more', () => {
    const { seen, log, watch, descriptor } = watched();
    log('0000:1b:00', 79, null);
    watch.stop();
    expect(isOpen(descriptor)).toBe(false);
    vi.advanceTimersByTime(1000);
    expect(seen).toEqual([]);
  });

  test('where the log may not be read NVML says it, without process and message', () => {
    const events = [{ busId: '00000000:3B:00.0', code: 48 }];
    let closed = 0;
    const native: XidNative = {
      kernelLogOpen() {
        throw new Error('EPERM');
      },
      xidEventsOpen: () => noEvents,
      xidEventsTake: () => events.splice(0),
      xidEventsClose: () => void (closed += 1),
    };
    const seen: Xid[] = [];
    const watch = watchXids({
      native,
      gpus: new Map([[5, second]]),
      report: (xid) => seen.push(xid),
      root: machine ?? '',
    });
    const before = Date.now();
    watch?.look();
    expect(seen).toEqual([
      { code: 48, gpu: 1, address: '0000:3b:00.0', ranks: [5], pid: null, message: '', time: expect.any(Number) },
    ]);
    expect(seen[0]?.time).toBeGreaterThanOrEqual(before);
    watch?.stop();
    expect(closed).toBe(1);
  });
});
