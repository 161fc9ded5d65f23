/** A program's communicator over an engine that the test plays: what begins when, what its promises resolve to, and its end. */
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { CommHandle, MemoryHandle, Native, Operation, StreamHandle, Watcher } from '../../worker/engine/native.ts';
import { operationNumber } from '../../worker/engine/native.ts';
import { BUFFER_COLLECTIVES } from '../../control/collectives.ts';
import { Communicator } from '../../worker/communicator.ts';
import { Device } from '../../worker/device/device.ts';
import { NcclError, UsageError } from '../../worker/engine/errors.ts';
import { group } from '../../worker/group.ts';

const kinds = [...BUFFER_COLLECTIVES, 'send', 'receive', 'barrier'] as const;
const nameOf = (kind: number): string => kinds.find((name) => operationNumber(name) === kind) ?? String(kind);
const text = ([, kind, , , count, , , peer]: Operation): string => `${nameOf(kind)} ${count} ${peer}`;

/** What the addon throws. */
class NativeError extends Error {
  override readonly name = 'NativeError';
  readonly code: number;
  constructor(message: string, code: number) {
    super(message);
    this.code = code;
  }
}

const nobody: Watcher = () => {};
/** After its end. */
const closedBefore = (call: string) => new UsageError(`${call}: the communicator was closed before`);

afterEach(() => void vi.restoreAllMocks());

/** Rank 1 of two. Operations end when the test says so (`end`), or at once. */
function member({ atOnce = false, gpu = null }: { atOnce?: boolean; gpu?: number | null } = {}) {
  const log: string[] = [];
  const handle: CommHandle = Object.create(null);
  const stream: StreamHandle = Object.create(null);
  const memory: MemoryHandle = Object.create(null);
  let number = 0;
  let watcher: Watcher = nobody;
  const next = (): number => (atOnce ? 0 : ++number);
  const streamEnds: PromiseWithResolvers<void>[] = [];
  const splits: PromiseWithResolvers<CommHandle | null>[] = [];
  const native: Native = Object.assign(Object.create(null), {
    commWatch: (_: CommHandle, one: Watcher) => void (watcher = one),
    commInfo: () => ({ rank: 1, size: 2, localRank: 0, localSize: 1, host: 1, hosts: [{ name: 'a' }, { name: 'b' }] }),
    operate(...operation: Operation) {
      log.push(text(operation));
      return next();
    },
    group(operations: readonly Operation[]) {
      log.push(`group of ${operations.map(text).join(', ')}`);
      return operations.map(() => next());
    },
    streamCreate: () => stream,
    deviceAllocate: () => memory,
    streamOperate: (_: CommHandle, kind: number) => void log.push(`queue ${nameOf(kind)}`),
    streamEnded(_: StreamHandle, comm: CommHandle | null) {
      const ends = Promise.withResolvers<void>();
      streamEnds.push(ends);
      log.push(comm === handle ? 'stream of the communicator' : 'stream');
      return ends.promise;
    },
    nodeBarrier: async () => void log.push('node barrier'),
    commSplit(_: CommHandle, color: number | null, key: number) {
      const split = Promise.withResolvers<CommHandle | null>();
      splits.push(split);
      log.push(`split ${color} ${key}`);
      return split.promise;
    },
    abort: (_: CommHandle, reason: string) => void log.push(`abort: ${reason}`),
    commClose: async () => void log.push('close'),
  });
  const comm = new Communicator(native, handle, new Device(native, gpu));
  /** All operations up to the newest end; the newest with this error. */
  const end = (error?: Error): void => watcher(number, error === undefined ? [] : [[number, error]]);
  return { comm, native, log, end, streamEnds, splits };
}

/** Whether it settles without an end of any operation. */
async function isSettled(promise: Promise<unknown>): Promise<boolean> {
  let settled = false;
  const settle = () => void (settled = true);
  promise.then(settle, settle);
  for (let tick = 0; tick < 2; tick++) await new Promise((resolve) => setImmediate(resolve)); // it may yield once
  return settled;
}

const two = () => new Float32Array(2);
const four = () => new Float32Array(4);

test('a communicator knows its place, and gives memory and streams of its device', () => {
  const { comm } = member();
  expect([comm.rank, comm.size, comm.localRank, comm.localSize, comm.host, comm.hosts.length]).toEqual([
    1, 2, 0, 1, 1, 2,
  ]);
  expect(comm.allocate('float16', 3)).toMatchObject({ type: 'float16', length: 3 });
  expect(comm.stream()).not.toBe(comm.stream());
});

describe.each([true, false])('operations that end at once: %s', (atOnce) => {
  const [send, receive] = [two(), two()];
  const [whole, other] = [four(), four()];
  const cases: readonly (readonly [string, (comm: Communicator) => Promise<unknown>, unknown])[] = [
    ['allReduce 2 0', (comm) => comm.allReduce(send), send],
    ['allReduce 2 0', (comm) => comm.allReduce(send, { op: 'max' }), send],
    ['allReduce 2 0', (comm) => comm.allReduce(send, receive, { op: 'max' }), receive],
    ['allGather 2 0', (comm) => comm.allGather(send, whole), whole],
    ['reduceScatter 2 0', (comm) => comm.reduceScatter(whole, receive), receive],
    ['broadcast 2 0', (comm) => comm.broadcast(send), send],
    ['broadcast 2 1', (comm) => comm.broadcast(send, { root: 1 }), send],
    ['broadcast 2 1', (comm) => comm.broadcast(send, receive, { root: 1 }), receive],
    ['broadcast 2 0', (comm) => comm.broadcast(null, receive), receive],
    ['reduce 2 0', (comm) => comm.reduce(send), send],
    ['reduce 2 1', (comm) => comm.reduce(send, { root: 1 }), send],
    ['reduce 2 1', (comm) => comm.reduce(send, receive, { root: 1 }), receive],
    ['reduce 2 0', (comm) => comm.reduce(send, null), null],
    ['reduce 2 0', (comm) => comm.reduce(send, null, { root: 0 }), null],
    ['allToAll 2 0', (comm) => comm.allToAll(whole), whole],
    ['allToAll 2 0', (comm) => comm.allToAll(whole, other), other],
    ['gather 2 0', (comm) => comm.gather(send, null), null],
    ['gather 2 1', (comm) => comm.gather(send, whole, { root: 1 }), whole],
    ['scatter 2 0', (comm) => comm.scatter(null, receive), receive],
    ['scatter 2 1', (comm) => comm.scatter(whole, receive, { root: 1 }), receive],
    ['barrier 0 0', (comm) => comm.barrier(), undefined],
    ['group of send 2 0', (comm) => comm.send(send, 0), undefined],
    ['group of receive 2 0', (comm) => comm.recv(receive, 0), receive],
  ];

  test.each(cases)('%s: case %# resolves to its result when it has ended', async (begun, call, result) => {
    const { comm, log, end } = member({ atOnce });
    const promise = call(comm);
    await Promise.resolve();
    expect(log).toEqual([begun]);
    expect(await isSettled(promise)).toBe(atOnce);
    end();
    expect(await promise).toBe(result);
  });

  test('an operation with a signal ends like any other, and no listener stays', async () => {
    const { comm, log, end } = member({ atOnce });
    const { signal } = new AbortController();
    const [added, removed] = [vi.spyOn(signal, 'addEventListener'), vi.spyOn(signal, 'removeEventListener')];
    const promise = comm.allReduce(send, { signal });
    expect(await isSettled(promise)).toBe(atOnce);
    end();
    expect(await promise).toBe(send);
    expect(added.mock.calls).toEqual(removed.mock.calls);
    expect([log, added.mock.calls.length]).toEqual([['allReduce 2 0'], 1]);
  });
});

describe('arguments that make no operation', () => {
  test('a broadcast needs an array to receive into', async () => {
    const { comm, log } = member();
    const withoutArray: [Float32Array] = JSON.parse('[null]'); // as a program without types calls it
    await expect(comm.broadcast<Float32Array>(...withoutArray)).rejects.toThrow(
      new UsageError('broadcast: there is no array to receive into'),
    );
    expect(log).toEqual([]);
  });

  test.each([
    [-1, 0, 'split: the color is -1; it must be null or a whole number from 0 to 2147483647'],
    [0.5, 0, 'split: the color is 0.5; it must be null or a whole number from 0 to 2147483647'],
    [2 ** 31, 0, 'split: the color is 2147483648; it must be null or a whole number from 0 to 2147483647'],
    [0, -(2 ** 31), 'split: the key is -2147483648; it must be a whole number'],
    [null, 2 ** 31, 'split: the key is 2147483648; it must be a whole number'],
  ])('color %s and key %s of a split are refused', async (color, key, message) => {
    const { comm, log } = member();
    await expect(comm.split(color, key)).rejects.toThrow(new UsageError(message));
    expect(log).toEqual([]);
  });
});

describe('errors of the engine', () => {
  test('an operation that fails rejects with the program interface’s error', async () => {
    const { comm, end } = member();
    const promise = comm.allReduce(two());
    end(new NativeError('rank 0 died', 6));
    const error = await promise.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NcclError);
    expect(error).toMatchObject({ code: 'remoteError', message: 'rank 0 died' });
  });

  test.each(['operate', 'group', 'nodeBarrier', 'abort'] as const)('%s may throw at once', async (name) => {
    const { comm, native } = member();
    Object.assign(native, {
      [name]() {
        throw new NativeError('no', 5);
      },
    });
    const calls = {
      operate: () => comm.allReduce(two()),
      group: () => comm.send(two(), 0),
      nodeBarrier: () => comm.nodeBarrier(),
      abort: async () => comm.abort('why'),
    };
    await expect(calls[name]()).rejects.toMatchObject({ name: 'NcclError', code: 'invalidUsage' });
  });
});

describe('the order of operations', () => {
  test('transfers of one step begin together, before whatever follows them', async () => {
    const { comm, log, end } = member();
    const transfers = [comm.send(two(), 0), comm.recv(two(), 0)];
    expect(log).toEqual([]);
    const reduced = comm.allReduce(two());
    expect(log).toEqual(['group of send 2 0, receive 2 0', 'allReduce 2 0']);
    end();
    await Promise.all([...transfers, reduced]);
    const before = [comm.send(two(), 0), comm.nodeBarrier()];
    await Promise.resolve();
    expect(log.slice(2)).toEqual(['group of send 2 0', 'node barrier']);
    end();
    await Promise.all(before);
  });

  test('operations of a group begin with its end', async () => {
    const { comm, log, end } = member();
    const all = group(() => [comm.allReduce(two()), comm.send(two(), 0), comm.barrier()]);
    expect(log).toEqual(['group of allReduce 2 0, send 2 0, barrier 0 0']);
    expect(await isSettled(Promise.race(all))).toBe(false);
    end();
    await Promise.all(all);
  });

  test('splits follow one another, and a failed one hinders no later one', async () => {
    const { comm, log, splits } = member();
    const [first, second, third] = [comm.split(1), comm.split(null, -3), comm.split(2, 5)];
    await isSettled(first);
    expect(log).toEqual(['split 1 0']);
    splits[0]?.reject(new NativeError('no', 6));
    await expect(first).rejects.toMatchObject({ code: 'remoteError' });
    await isSettled(second);
    splits[1]?.resolve(null);
    expect(await second).toBeNull();
    await isSettled(third);
    expect(log).toEqual(['split 1 0', 'split null -3', 'split 2 5']);
    splits[2]?.resolve(Object.create(null));
    expect(await third).toBeInstanceOf(Communicator);
    expect(await third).not.toBe(comm);
  });

  test('transfers begin before a split and before an abort', async () => {
    const { comm, log, splits } = member();
    comm.send(two(), 0).catch(() => {});
    const split = comm.split(0);
    await isSettled(split);
    splits[0]?.resolve(null);
    await split;
    comm.send(two(), 0).catch(() => {});
    comm.abort('enough');
    expect(log).toEqual(['group of send 2 0', 'split 0 0', 'group of send 2 0', 'abort: enough']);
  });
});

describe('operations on a stream', () => {
  test('they are queued there, and the communicator is left after them', async () => {
    const { comm, log, streamEnds } = member({ gpu: 0 });
    const [send, receive] = [comm.allocate('float32', 2), comm.allocate('float32', 2)];
    const reduced = comm.allReduce(send, receive);
    await isSettled(reduced);
    expect(log).toEqual(['queue allReduce', 'stream of the communicator']);
    const closed = comm.close();
    expect(await isSettled(closed)).toBe(false);
    expect(log).not.toContain('close');
    for (const { resolve } of streamEnds) resolve();
    expect(await reduced).toBe(receive);
    await closed;
    expect(log.at(-1)).toBe('close');
  });

  test('one that failed keeps nobody from leaving', async () => {
    const { comm, log, streamEnds } = member({ gpu: 0 });
    const failed = comm.barrier({ stream: comm.stream() });
    await isSettled(failed);
    for (const { reject } of streamEnds) reject(new NativeError('lost', 6));
    await expect(failed).rejects.toMatchObject({ code: 'remoteError' });
    await comm.close();
    expect(log.at(-1)).toBe('close');
  });

  test('transfers and groups work with buffers of the device', async () => {
    const { comm, log, streamEnds } = member({ gpu: 0 });
    const buffer = comm.allocate('float32', 2);
    const sent = comm.send(buffer, 0);
    await isSettled(sent);
    expect(log).toEqual(['group of send 2 0', 'stream of the communicator']);
    const grouped = group(() => [comm.allReduce(buffer), comm.recv(buffer, 0)]);
    await isSettled(Promise.race(grouped));
    expect(log[2]).toBe('group of allReduce 2 0, receive 2 0');
    for (const { resolve } of streamEnds) resolve();
    await Promise.all([sent, ...grouped]);
  });
});

describe('the end of a communicator', () => {
  test('closing begins what was called, leaves once, and ends all use', async () => {
    const { comm, log, end } = member();
    comm.send(two(), 0).catch(() => {});
    const closed = comm.close();
    expect(comm.close()).toBe(closed);
    expect(log.slice(0, 2)).toEqual(['group of send 2 0', 'close']);
    await closed;
    await comm[Symbol.asyncDispose]();
    end();
    expect(log.filter((line) => line === 'close')).toEqual(['close']);
    await expect(comm.allReduce(two())).rejects.toThrow(closedBefore('allReduce'));
    await expect(comm.send(two(), 0)).rejects.toThrow(closedBefore('send'));
    await expect(comm.recv(two(), 0)).rejects.toThrow(closedBefore('recv'));
    await expect(comm.barrier()).rejects.toThrow(closedBefore('barrier'));
    await expect(comm.nodeBarrier()).rejects.toThrow(closedBefore('nodeBarrier'));
    await expect(comm.split(0)).rejects.toThrow(closedBefore('split'));
    expect(() => comm.abort('late')).toThrow(closedBefore('abort'));
  });

  test('an aborted communicator says why, and can be closed', async () => {
    const { comm, log } = member();
    comm.abort('enough');
    await expect(comm.barrier()).rejects.toThrow(
      new UsageError('barrier: the communicator was aborted before: enough'),
    );
    await comm.close();
    expect(log).toEqual(['abort: enough', 'close']);
  });

  test('a signal that was aborted before lets nothing begin', async () => {
    const { comm, log } = member();
    await expect(comm.allReduce(two(), { signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow(
      'too late',
    );
    expect(log).toEqual([]);
  });

  test('a signal during an operation aborts the communicator once, and is the reason of the failure', async () => {
    const { comm, log, end } = member();
    const controller = new AbortController();
    const { signal } = controller;
    const both = [comm.allReduce(two(), { signal }), comm.barrier({ signal })];
    const outcomes = Promise.allSettled(both);
    controller.abort(new Error('enough'));
    end(new NativeError('aborted', 6));
    const [, second] = await outcomes;
    expect(second).toMatchObject({ status: 'rejected', reason: new Error('enough') });
    expect(log.filter((line) => line.startsWith('abort'))).toEqual([
      'abort: the signal of an operation was aborted: Error: enough',
    ]);
  });
});
