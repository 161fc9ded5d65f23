/** Operations on buffers of devices: what is checked of them, and what the engine gets. */
import { describe, expect, it } from 'vitest';
import { collectiveOperation, transferOperation, type CollectiveCall, type Member } from '../../worker/calls.ts';
import { DeviceBuffer } from '../../worker/device/buffer.ts';
import { Device } from '../../worker/device/device.ts';
import { isOnDevice } from '../../worker/device/operands.ts';
import type { ElementType } from '../../worker/engine/elements.ts';
import { elementTypes } from '../../worker/engine/elements.ts';
import type { CommHandle, MemoryHandle, Native, StreamHandle } from '../../worker/engine/native.ts';

const handle: CommHandle = Object.create(null);
const stream: StreamHandle = Object.create(null);
const memory: MemoryHandle = Object.create(null);

/** Notes what the engine is asked to do. */
function engine() {
  const calls: unknown[][] = [];
  const note =
    (name: string) =>
    (...given: unknown[]): void => {
      calls.push([name, ...given]);
    };
  const native: Native = Object.assign(Object.create(null), {
    streamCreate: () => stream,
    streamEnded: () => Promise.resolve(),
    streamFill: note('fill'),
    streamCopy: note('copy'),
    deviceFree: note('free'),
  });
  return { native, calls };
}

const { native } = engine();
const gpu = new Device(native, 3);
const other = new Device(native, 4);
const host = new Device(native, null);

function buffer(length: number, type: ElementType = 'float32', device = gpu, offset = 0): DeviceBuffer {
  return new DeviceBuffer(
    device === gpu ? native : native,
    device,
    { handle: memory, closed: false },
    type,
    offset,
    length,
  );
}

function member(device: Device, rank = 0): Member {
  return { handle, rank, size: 2, device };
}

type Buffers = Partial<Pick<CollectiveCall, 'send' | 'receive' | 'options'>>;

/** What the stream gets: kind, addresses, count, type, operator, root. */
function queued(kind: CollectiveCall['kind'], buffers: Buffers, device = gpu, rank = 0): unknown[] {
  const made = collectiveOperation(member(device, rank), { kind, send: null, receive: null, options: {}, ...buffers });
  if (!isOnDevice(made)) throw new Error('not for a stream');
  const [, number, send, receive, count, type, operator, root] = made.operation;
  return [number, send, receive, count, elementTypes[type], operator, root];
}

const allGather = (send: Uint8Array, receive: Uint8Array) => () =>
  collectiveOperation(member(host, 1), { kind: 'allGather', send, receive, options: {} });

const call =
  (send: Uint16Array | Float32Array, receive: Uint16Array | Float32Array, kind: CollectiveCall['kind']) => () =>
    collectiveOperation(member(host), { kind, send, receive, options: {} });

describe('operations on device buffers', () => {
  it('the engine gets addresses, counts and types', () => {
    const [send, receive] = [buffer(2), buffer(4)];
    expect(queued('allGather', { send, receive })).toEqual([4, [memory, 0], [memory, 0], 2, 'float32', 0, 0]);
    expect(queued('allReduce', { send: receive.slice(2), receive: send, options: { op: 'max' } })).toEqual([
      3,
      [memory, 8],
      [memory, 0],
      2,
      'float32',
      2,
      0,
    ]);
    expect(queued('scatter', { receive: buffer(3), options: { root: 1 } })).toEqual([
      10,
      null,
      [memory, 0],
      3,
      'float32',
      0,
      1,
    ]);
  });

  it('the host device takes buffers in the order of its stream', () => {
    const both = buffer(2, 'int32', host);
    expect(queued('allReduce', { send: both, receive: both }, host)[4]).toBe('int32');
    expect(() =>
      collectiveOperation(member(host), {
        kind: 'allReduce',
        send: new Int32Array(2),
        receive: null,
        options: { stream: host.stream, root: 0 },
      }),
    ).toThrow('allReduce: the array to receive into is missing');
    const array = new Int32Array(2);
    expect(() => queued('allReduce', { send: array, receive: array, options: { stream: host.stream } }, host)).toThrow(
      'allReduce: a stream is for device buffers, not for a Int32Array; make one with comm.allocate',
    );
  });

  it('the type that a call names must be the type of the buffer', () => {
    const both = buffer(2, 'bfloat16');
    expect(queued('allReduce', { send: both, receive: both, options: { type: 'bfloat16' } })[4]).toBe('bfloat16');
    expect(() => queued('allReduce', { send: both, receive: both, options: { type: 'float16' } })).toThrow(
      "allReduce: the buffer's elements are bfloat16, not float16",
    );
  });

  it('buffers of unlike types are described', () => {
    expect(() => queued('allReduce', { send: buffer(2), receive: buffer(3) })).toThrow(
      'allReduce: cannot go from a device buffer of 2 float32 into a device buffer of 3 float32; they must be alike',
    );
  });

  it('slices of one buffer must not overlap', () => {
    const whole = buffer(8);
    expect(() => queued('allReduce', { send: whole.slice(0, 4), receive: whole.slice(1, 5) })).toThrow('overlap');
    expect(queued('allReduce', { send: whole.slice(0, 4), receive: whole.slice(4) })[3]).toBe(4);
    expect(() =>
      queued('allReduce', {
        send: whole.slice(0, 1),
        receive: new DeviceBuffer(native, gpu, { handle: memory, closed: false }, 'float32', 0, 1),
      }),
    ).not.toThrow();
  });

  it('the array that a message names is the one at fault', () => {
    const words = new Uint16Array(2);
    const bytes = new Float32Array(2);
    expect(call(words, bytes, 'allReduce')).toThrow('allReduce: the array to send is a Uint16Array');
    expect(call(bytes, words, 'allReduce')).toThrow('allReduce: the array to receive into is a Uint16Array');
    expect(call(words, bytes, 'reduceScatter')).toThrow('reduceScatter: the array to send is a Uint16Array');
    expect(call(bytes, words, 'reduceScatter')).toThrow('reduceScatter: the array to receive into is a Uint16Array');
  });

  it('one element in place elsewhere overlaps, and none never does', () => {
    const array = new Uint8Array(4);
    const at = (from: number, to: number) => array.subarray(from, to);
    expect(allGather(at(0, 1), at(0, 2))).toThrow(
      'allGather: a Uint8Array of 1 and a Uint8Array of 2 overlap; in place, the smaller must be part 1 of the larger',
    );
    expect(allGather(at(1, 2), at(0, 2))).not.toThrow();
    expect(allGather(at(1, 1), at(0, 0))).not.toThrow();
  });

  it('buffers, arrays and streams of different devices are refused', () => {
    const [own, others] = [buffer(2), buffer(2, 'float32', other)];
    expect(() => queued('allReduce', { send: others, receive: others })).toThrow(
      'allReduce: the buffer is on GPU 4, the communicator on GPU 3',
    );
    expect(() => queued('allReduce', { send: own, receive: own }, host)).toThrow(
      'allReduce: the buffer is on GPU 3, the communicator on the host device',
    );
    expect(() => queued('allReduce', { send: own, receive: new Float32Array(2) })).toThrow(
      'allReduce: one buffer is on a device, the other is a Float32Array',
    );
    expect(() => queued('allReduce', { send: own, receive: own, options: { stream: other.stream } })).toThrow(
      'allReduce: the stream is of another device than the communicator, which is on GPU 3',
    );
    expect(() => transferOperation(member(gpu), 'send', new Float32Array(2), 1, {})).toThrow(
      "send: the communicator is on GPU 3, a Float32Array is in the host's memory; make a buffer with comm.allocate(type, length) and copy the array into it with copyFrom",
    );
  });
});

describe('a device', () => {
  it('a device allocates as many bytes as its elements have', () => {
    const asked: unknown[] = [];
    const allocating: Native = Object.assign(Object.create(null), {
      deviceAllocate: (...given: unknown[]) => {
        asked.push(given);
        return memory;
      },
    });
    const [cuda, plain] = [new Device(allocating, 3), new Device(allocating, null)];
    expect([cuda.type, plain.type]).toEqual(['cuda', 'host']);
    const { byteOffset, length, type } = cuda.allocate('float64', 5);
    expect({ byteOffset, length, type }).toEqual({ byteOffset: 0, length: 5, type: 'float64' });
    expect(plain.allocate('int8', 0).slice(0).length).toBe(0);
    expect(asked).toEqual([
      [3, 40],
      [null, 0],
    ]);
    for (const odd of [-1, 0.5, 2 ** 53])
      expect(() => cuda.allocate('int8', odd)).toThrow(
        `allocate: ${odd} is no number of elements; it must be a whole number from 0`,
      );
    expect(() => cuda.allocate('float64', 2 ** 50)).toThrow('is no number of elements');
    expect(asked).toHaveLength(2);
  });

  it('a device has one stream of its own', () => {
    expect(gpu.stream).toBe(gpu.stream);
    expect(gpu.newStream()).not.toBe(gpu.stream);
  });

  it('every element type has its size', () => {
    const sizes = elementTypes.map(
      (type) => new DeviceBuffer(native, gpu, { handle: memory, closed: false }, type, 0, 1).byteLength,
    );
    expect(sizes).toEqual([1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1]);
  });
});

describe('a device buffer', () => {
  it.each([
    [0, 5],
    [-1, 2],
    [3, 2],
    [0.5, 2],
    [0, 1.5],
  ])('elements %d to %d are no slice of four', (begin, end) => {
    expect(() => buffer(4).slice(begin, end)).toThrow(
      `slice: ${begin} to ${end} is no range of a buffer of 4 elements`,
    );
  });

  it('a slice has its offset and length in bytes', () => {
    const { byteOffset, byteLength, length } = buffer(8, 'int64', gpu, 16).slice(3, 7).slice(1);
    expect({ byteOffset, byteLength, length }).toEqual({ byteOffset: 48, byteLength: 24, length: 3 });
    expect(buffer(4).slice(4).length).toBe(0);
    expect(buffer(4).slice(0, 4).length).toBe(4);
  });

  it('a buffer is filled with bytes that are alike', async () => {
    const { native: noting, calls } = engine();
    const make = (type: ElementType) =>
      new DeviceBuffer(noting, new Device(noting, 3), { handle: memory, closed: false }, type, 8, 2);
    await make('uint8').fill(255);
    await make('int8').fill(127);
    await make('float64').fill(0);
    expect(calls).toEqual([
      ['fill', stream, memory, 8, 2, 255],
      ['fill', stream, memory, 8, 2, 127],
      ['fill', stream, memory, 8, 16, 0],
    ]);
    for (const [type, value] of [
      ['uint8', 256],
      ['int8', 128],
      ['float64', 1],
      ['uint8', -1],
      ['uint8', 0.5],
    ] as const)
      await expect(make(type).fill(value)).rejects.toThrow(
        `fill: ${value} cannot fill a buffer of ${type}; copyFrom an array that has it`,
      );
  });

  it('copies need an array of the same type and length', async () => {
    const { native: noting, calls } = engine();
    const device = new Device(noting, 3);
    const two = new DeviceBuffer(noting, device, { handle: memory, closed: false }, 'float32', 4, 2);
    const array = new Float32Array(2);
    await expect(two.copyFrom(array)).resolves.toBe(two);
    await expect(two.copyTo(array)).resolves.toBe(array);
    expect(calls).toEqual([
      ['copy', stream, memory, 4, array, true],
      ['copy', stream, memory, 4, array, false],
    ]);
    await expect(two.copyFrom(new Float32Array(1))).rejects.toThrow(
      'copyFrom: a Float32Array of 1 and a buffer of 2 float32 are not alike',
    );
    await expect(two.copyTo(new Int32Array(2))).rejects.toThrow(
      'copyTo: a Int32Array of 2 and a buffer of 2 float32 are not alike',
    );
    await expect(two.copyTo(array, { stream: other.stream })).rejects.toThrow(
      'copyTo: the stream is of another device than the buffer',
    );
  });

  it('a closed buffer is freed once and refuses everything', async () => {
    const { native: noting, calls } = engine();
    const closed = new DeviceBuffer(noting, new Device(noting, 3), { handle: memory, closed: false }, 'int8', 0, 2);
    const part = closed.slice(1);
    closed.close();
    closed[Symbol.dispose]();
    expect(calls).toEqual([['free', memory]]);
    expect(() => part.slice(0)).toThrow('slice: the buffer was closed before');
    await expect(part.fill(0)).rejects.toThrow('fill: the buffer was closed before');
  });
});
