/** From a call of the program to an operation of the engine: what is checked, and what the engine gets. */
import { describe, expect, it } from 'vitest';
import {
  barrierOperation,
  collectiveOperation,
  transferOperation,
  type CollectiveCall,
  type Member,
} from '../../worker/calls.ts';
import { Device } from '../../worker/device/device.ts';
import { isOnDevice } from '../../worker/device/operands.ts';
import { elementType, elementTypes, typeOfArray } from '../../worker/engine/elements.ts';
import type { CommHandle, Native } from '../../worker/engine/native.ts';
import { operatorOf } from '../../worker/operators.ts';

/** Nothing here calls the engine. */
const native: Native = Object.create(null);
const handle: CommHandle = Object.create(null);

function member(rank: number, gpu: number | null = null): Member {
  return { handle, rank, size: 2, device: new Device(native, gpu) };
}

type Kind = CollectiveCall['kind'];
type Buffers = Partial<Pick<CollectiveCall, 'send' | 'receive' | 'options'>>;

/** What the engine gets of a collective at a rank: kind, count, type, operator, root. */
function operation(kind: Kind, buffers: Buffers, rank = 0): number[] {
  const made = collectiveOperation(member(rank), { kind, send: null, receive: null, options: {}, ...buffers });
  if (isOnDevice(made)) throw new Error('not for a stream');
  const [, number, , , count, type, operator, root] = made;
  return [number, count, type, operator, root];
}

const two = new Float32Array(2);
const four = new Float32Array(4);
const int32 = elementTypes.indexOf('int32');
const float32 = elementTypes.indexOf('float32');

describe('a collective of two ranks', () => {
  it.each([
    ['allReduce', { send: two, receive: new Float32Array(2) }, [3, 2, float32, 0, 0]],
    ['allGather', { send: two, receive: four }, [4, 2, float32, 0, 0]],
    ['reduceScatter', { send: four, receive: two }, [5, 2, float32, 0, 0]],
    ['broadcast', { send: two, receive: two }, [6, 2, float32, 0, 0]],
    ['reduce', { send: two, receive: new Float32Array(2), options: { op: 'max' } }, [7, 2, float32, 2, 0]],
    ['allToAll', { send: four, receive: new Float32Array(4) }, [8, 2, float32, 0, 0]],
    ['gather', { send: two, receive: four }, [9, 2, float32, 0, 0]],
    ['scatter', { send: four, receive: two }, [10, 2, float32, 0, 0]],
  ] as const)(
    'the engine gets the number of %s, and the elements that one rank contributes',
    (kind, buffers, wanted) => {
      expect(operation(kind, buffers)).toEqual(wanted);
    },
  );

  it('a rank needs no buffer that the root alone uses', () => {
    expect(operation('gather', { send: two, options: { root: 1 } })).toEqual([9, 2, float32, 0, 1]);
    expect(operation('reduce', { send: two, options: { root: 1 } })).toEqual([7, 2, float32, 0, 1]);
    expect(operation('scatter', { receive: two, options: { root: 1 } })).toEqual([10, 2, float32, 0, 1]);
    expect(operation('broadcast', { receive: two, options: { root: 1 } })).toEqual([6, 2, float32, 0, 1]);
  });

  it('the root is refused without the buffer that it uses', () => {
    expect(() => operation('gather', { send: two, options: { root: 1 } }, 1)).toThrow(
      'gather: the array to receive into is missing',
    );
    expect(() => operation('scatter', { receive: two })).toThrow('scatter: the array to send is missing');
    expect(() => operation('allReduce', { receive: two })).toThrow('allReduce: the array to send is missing');
  });

  it.each([-1, 2, 0.5])('a communicator of two ranks has no root %d', (root) => {
    expect(() => operation('broadcast', { send: two, receive: two, options: { root } })).toThrow(
      `broadcast: rank ${root} does not exist; this communicator has ranks 0 to 1`,
    );
  });

  it('buffers of unlike types or lengths are refused', () => {
    expect(() => operation('allReduce', { send: two, receive: new Int32Array(2) })).toThrow(
      'allReduce: cannot go from a Float32Array of 2 into a Int32Array of 2; they must be alike',
    );
    expect(() => operation('allReduce', { send: two, receive: four })).toThrow('they must be alike');
    expect(() => operation('allGather', { send: two, receive: new Float32Array(2) })).toThrow(
      'what is received 2 times (the ranks) as many elements as what is sent',
    );
    expect(() => operation('reduceScatter', { send: two, receive: new Float32Array(2) })).toThrow(
      'what is sent 2 times (the ranks) as many elements as what is received',
    );
  });

  it('a buffer that cannot be cut into a part per rank is refused', () => {
    const three = new Float32Array(3);
    expect(() => operation('allToAll', { send: three, receive: new Float32Array(3) })).toThrow(
      'allToAll: a Float32Array of 3 cannot be cut into 2 parts, one per rank',
    );
  });
});

describe('buffers that overlap', () => {
  const memory = new Float32Array(8);
  const part = (from: number, to: number) => memory.subarray(from, to);

  it.each([
    ['allReduce', part(0, 4), part(0, 4), 0],
    ['allReduce', part(0, 4), part(4, 8), 0],
    ['allReduce', part(4, 8), part(0, 4), 0],
    ['allGather', part(0, 2), part(0, 4), 0],
    ['allGather', part(2, 4), part(0, 4), 1],
    ['reduceScatter', part(0, 4), part(2, 4), 1],
    ['allReduce', part(2, 2), part(0, 0), 0],
  ] as const)('%s takes buffers in place or apart (case %#)', (kind, send, receive, rank) => {
    expect(operation(kind, { send, receive }, rank)[1]).toBe(kind === 'allReduce' ? send.length : 2);
  });

  it('buffers that overlap anywhere else are refused', () => {
    expect(() => operation('allReduce', { send: part(0, 4), receive: part(1, 5) })).toThrow(
      'allReduce: a Float32Array of 4 and a Float32Array of 4 overlap; in place, they must be the same memory',
    );
    expect(() => operation('allGather', { send: part(0, 2), receive: part(0, 4) }, 1)).toThrow(
      'in place, the smaller must be part 1 of the larger',
    );
    expect(() => operation('reduceScatter', { send: part(0, 4), receive: part(2, 4) })).toThrow('part 0 of the larger');
  });
});

describe('a transfer', () => {
  it('a transfer has the peer, and the array on its side', () => {
    expect(transferOperation(member(0), 'send', two, 1, {})).toEqual([handle, 1, two, null, 2, float32, 0, 1, null]);
    expect(transferOperation(member(1), 'receive', two, 0, {})).toEqual([handle, 2, null, two, 2, float32, 0, 0, null]);
  });

  it('a transfer with a rank that does not exist, or an array on the wrong device, is refused', () => {
    expect(() => transferOperation(member(0), 'receive', two, 2, {})).toThrow('recv: rank 2 does not exist');
    expect(() => transferOperation(member(0, 3), 'send', two, 1, {})).toThrow('send: the communicator is on GPU 3');
  });
});

it('a barrier has no buffers', () => {
  expect(barrierOperation(member(0), {})).toEqual([handle, 0, null, null, 0, 0, 0, 0, null]);
});

describe('the elements of an array', () => {
  const role = { call: 'allReduce', use: 'send' } as const;

  it('the elements of an array are what its class says, or what the call says of their bits', () => {
    expect(elementType(new Int32Array(1), role)).toBe(int32);
    expect(elementType(new Uint16Array(1), role, 'bfloat16')).toBe(elementTypes.indexOf('bfloat16'));
    expect(elementType(new Uint8Array(1), role, 'float8e4m3')).toBe(elementTypes.indexOf('float8e4m3'));
    expect(elementType(new Float32Array(new SharedArrayBuffer(8)), role)).toBe(float32);
  });

  it('an ordinary array is named, with what to write', () => {
    const ordinary: unknown = [1, 2];
    const call = Reflect.apply.bind(null, elementType, undefined, [ordinary, role]);
    expect(call).toThrow('allReduce: the array to send is an ordinary array; write Float32Array.from(array)');
  });

  it('elements are refused if nothing says what they are, or if the type has another size', () => {
    expect(() => elementType(new Uint16Array(1), role)).toThrow(
      'allReduce: the array to send is a Uint16Array: say what',
    );
    expect(() => elementType(new Uint16Array(1), role, 'float32')).toThrow('have 2 bytes; a float32 has 4');
  });

  it('an array in memory that can shrink or is gone is refused', () => {
    const resizable = new Float32Array(new ArrayBuffer(8, { maxByteLength: 16 }));
    const growable = new Float32Array(new SharedArrayBuffer(8, { maxByteLength: 16 }));
    for (const array of [resizable, growable]) expect(() => elementType(array, role)).toThrow('in a resizable buffer');
    const gone = new Float32Array(2);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    expect(() => elementType(gone, role)).toThrow('has no memory');
  });

  it('an array of a copy may hold the bits of a type that no array has', () => {
    expect(typeOfArray(new Float32Array(1), 'copy', 'float32')).toBe(float32);
    expect(typeOfArray(new Uint16Array(1), 'copy', 'float16')).toBe(elementTypes.indexOf('float16'));
    expect(typeOfArray(new Uint16Array(1), 'copy', 'bfloat16')).toBe(elementTypes.indexOf('bfloat16'));
    expect(typeOfArray(new Int32Array(1), 'copy', 'float32')).toBe(int32);
    expect(() => typeOfArray(new Float32Array(1), 'copyTo', 'bfloat16')).toThrow('have 4 bytes; a bfloat16 has 2');
  });
});

describe('an operator', () => {
  it.each([
    ['sum', 0],
    ['prod', 1],
    ['max', 2],
    ['min', 3],
    ['avg', 4],
  ] as const)('the operator %s has the number of ncclRedOp_t', (name, number) => {
    expect(operatorOf(name, float32)).toEqual({ operator: number, factor: null });
  });

  it.each([
    ['int8', -1, [255]],
    ['uint8', 255, [255]],
    ['int32', -2, [254, 255, 255, 255]],
    ['uint32', 2 ** 31, [0, 0, 0, 128]],
    ['int64', -1n, [255, 255, 255, 255, 255, 255, 255, 255]],
    ['uint64', 1n, [1, 0, 0, 0, 0, 0, 0, 0]],
    ['float16', 1, [0, 0x3c]],
    ['float32', 1, [0, 0, 0x80, 0x3f]],
    ['float64', 1, [0, 0, 0, 0, 0, 0, 0xf0, 0x3f]],
    ['bfloat16', 1, [0x80, 0x3f]],
    ['float8e4m3', 1, [0x38]],
    ['float8e5m2', 1, [0x3c]],
  ] as const)('an operator that multiplies %s first brings the bytes of the factor', (type, preMulSum, bytes) => {
    const { operator, factor } = operatorOf({ preMulSum }, elementTypes.indexOf(type));
    expect(operator).toBe(0);
    expect([...(factor ?? [])]).toEqual(bytes);
  });

  it.each([
    ['int8', 128],
    ['int8', 0.5],
    ['uint8', -1],
    ['uint32', 2 ** 32],
    ['int64', 1],
    ['uint64', -1n],
    ['float32', 1n],
  ] as const)('a factor that %s cannot hold is refused: %s', (type, preMulSum) => {
    expect(() => operatorOf({ preMulSum }, elementTypes.indexOf(type))).toThrow(
      `the factor ${preMulSum} of the pre-multiplied sum is no ${type}`,
    );
  });
});
