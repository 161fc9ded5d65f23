/** From a call of the program to an operation of the engine: everything about its arguments is checked here. */
import { blockOf, DeviceBuffer } from './device/buffer.ts';
import type { Device } from './device/device.ts';
import { placed } from './device/operands.ts';
import type { NcclBuffer, OnDevice } from './device/operands.ts';
import type { DeviceStream } from './device/stream.ts';
import { elementType, elementTypes } from './engine/elements.ts';
import type { ElementType, NcclArray, Role } from './engine/elements.ts';
import type { CommHandle, Operation, OperationKind } from './engine/native.ts';
import { operationNumber } from './engine/native.ts';
import { UsageError } from './engine/errors.ts';
import { operatorOf } from './operators.ts';
import type { ReduceOperator } from './operators.ts';

/** What we use of an AbortSignal: programs need not have its declaration, which comes with Node's types or the DOM's. */
export interface Signal {
  readonly reason: unknown;
  throwIfAborted(): void;
  addEventListener(type: 'abort', listener: () => void): void;
  removeEventListener(type: 'abort', listener: () => void): void;
}

export interface OperationOptions {
  /**
   * What the elements are, where the array's class does not say it: `'bfloat16'` in a Uint16Array, `'float8e4m3'` or `'float8e5m2'` in a
   * Uint8Array.
   */
  readonly type?: ElementType;
  /**
   * When it is aborted before the operation has ended, the communicator is aborted, here and at every other rank, and the operation rejects
   * with the signal's reason. If it was aborted before the call, nothing begins.
   */
  readonly signal?: Signal;
  /** Of device buffers: in whose order it runs. Default: the device's own stream, `comm.device.stream`. */
  readonly stream?: DeviceStream;
}

export interface ReduceOptions extends OperationOptions {
  /** Default: 'sum'. */
  readonly op?: ReduceOperator;
}

export interface RootOptions extends OperationOptions {
  /** The rank that has or gets the data. Default: 0. */
  readonly root?: number;
}

export interface RootReduceOptions extends ReduceOptions, RootOptions {}

/** What the checks need of a communicator. */
export interface Member {
  readonly handle: CommHandle;
  readonly rank: number;
  readonly size: number;
  readonly device: Device;
}

/** How many parts a buffer has, a part being what one rank contributes or gets; and which buffer the root alone uses. */
interface Shape {
  readonly send: 'part' | 'part per rank';
  readonly receive: 'part' | 'part per rank';
  readonly atRoot: 'send' | 'receive' | null;
}

const shapes = {
  allReduce: { send: 'part', receive: 'part', atRoot: null },
  allGather: { send: 'part', receive: 'part per rank', atRoot: null },
  reduceScatter: { send: 'part per rank', receive: 'part', atRoot: null },
  broadcast: { send: 'part', receive: 'part', atRoot: 'send' },
  reduce: { send: 'part', receive: 'part', atRoot: 'receive' },
  allToAll: { send: 'part per rank', receive: 'part per rank', atRoot: null },
  gather: { send: 'part', receive: 'part per rank', atRoot: 'receive' },
  scatter: { send: 'part per rank', receive: 'part', atRoot: 'send' },
} as const satisfies Partial<Record<OperationKind, Shape>>;

/** A collective that moves data; the buffer that only the root uses may be null at the others. */
export interface CollectiveCall {
  readonly kind: keyof typeof shapes;
  readonly send: NcclBuffer | null;
  readonly receive: NcclBuffer | null;
  readonly options: RootReduceOptions;
}

/** @throws UsageError for a stream of another device */
export function barrierOperation(member: Member, { stream }: OperationOptions): Operation | OnDevice {
  return placed(member, 'barrier', stream, null, null, [operationNumber('barrier'), 0, 0, 0, 0, null]);
}

/** @throws UsageError */
export function transferOperation(
  member: Member,
  kind: 'send' | 'receive',
  array: NcclBuffer,
  peer: number,
  options: OperationOptions,
): Operation | OnDevice {
  const call = kind === 'send' ? 'send' : 'recv';
  const type = typeOf(array, { call, use: call }, options.type);
  checkRank(call, peer, member.size);
  const [send, receive] = kind === 'send' ? [array, null] : [null, array];
  return placed(member, call, options.stream, send, receive, [
    operationNumber(kind),
    array.length,
    type,
    0,
    peer,
    null,
  ]);
}

/** @throws UsageError */
export function collectiveOperation(member: Member, call: CollectiveCall): Operation | OnDevice {
  const { kind, options } = call;
  const shape: Shape = shapes[kind];
  const root = options.root ?? 0;
  checkRank(kind, root, member.size);
  const isRoot = root === member.rank;
  const send = shape.atRoot === 'send' && !isRoot ? null : required(call.send, kind, 'send');
  const receive = shape.atRoot === 'receive' && !isRoot ? null : required(call.receive, kind, 'receive into');
  const part = shape.send === 'part' ? (send ?? receive) : receive;
  const single = required(part, kind, 'send');
  const buffer = memoryOf(single);
  const singleUse = single === send ? 'send' : 'receive into';
  const type = typeOf(single, { call: kind, use: singleUse }, options.type, buffer);
  if (send !== null && receive !== null && send !== receive) {
    const other = single === send ? receive : send;
    const use = other === send ? 'send' : 'receive into';
    const otherBuffer = memoryOf(other);
    const otherType = typeOf(other, { call: kind, use }, options.type, otherBuffer);
    if (type !== otherType) throw unlike(kind, shape, member, send, receive);
    checkLengths(kind, shape, member, send, receive);
    if (buffer === otherBuffer) checkOverlap(kind, shape, member, send, receive);
  }
  if (shape.send === 'part per rank' && shape.receive === 'part per rank' && single.length % member.size !== 0)
    throw new UsageError(`${kind}: ${describe(single)} cannot be cut into ${member.size} parts, one per rank`);
  const count = shape.send === 'part' || shape.receive === 'part' ? single.length : single.length / member.size;
  const { operator, factor } = operatorOf(options.op ?? 'sum', type);
  const number = operationNumber(kind);
  const { device, handle } = member;
  // Written out, because a small operation takes no longer than the spreading of its arguments.
  if (device.gpu === null && options.stream === undefined && isArray(send) && isArray(receive))
    return [handle, number, send, receive, count, type, operator, root, factor];
  const rest = [number, count, type, operator, root, factor] as const;
  return placed(member, kind, options.stream, send, receive, rest);
}

const isArray = (buffer: NcclBuffer | null): buffer is NcclArray | null => !(buffer instanceof DeviceBuffer);

/** What two buffers share that may overlap; it takes V8 a while to say. */
function memoryOf(array: NcclBuffer): object {
  return array instanceof DeviceBuffer ? blockOf(array) : array.buffer;
}

function typeOf(array: NcclBuffer, role: Role, asked: ElementType | undefined, memory = memoryOf(array)): number {
  if (!(array instanceof DeviceBuffer)) return elementType(array, role, asked, memory);
  if (asked === undefined || asked === array.type) return elementTypes.indexOf(array.type);
  throw new UsageError(`${role.call}: the buffer's elements are ${array.type}, not ${asked}`);
}

function required(array: NcclBuffer | null, call: string, use: Role['use']): NcclBuffer {
  if (array === null) throw new UsageError(`${call}: the array to ${use} is missing`);
  return array;
}

/** @throws UsageError */
function checkRank(call: string, rank: number, size: number): void {
  if (Number.isInteger(rank) && rank >= 0 && rank < size) return;
  throw new UsageError(`${call}: rank ${rank} does not exist; this communicator has ranks 0 to ${size - 1}`);
}

function checkLengths(kind: string, shape: Shape, member: Member, send: NcclBuffer, receive: NcclBuffer): void {
  const ranks = (parts: Shape['send']) => (parts === 'part' ? 1 : member.size);
  if (send.length * ranks(shape.receive) !== receive.length * ranks(shape.send))
    throw unlike(kind, shape, member, send, receive);
}

/** Of arrays over one buffer. In place means: where the part belongs. Any other overlap would be written while it is read. */
function checkOverlap(kind: string, shape: Shape, { rank }: Member, send: NcclBuffer, receive: NcclBuffer): void {
  const begin = { send: send.byteOffset, receive: receive.byteOffset };
  const apart = begin.send + send.byteLength <= begin.receive || begin.receive + receive.byteLength <= begin.send;
  if (apart || send.length === 0) return;
  const own = rank * Math.min(send.byteLength, receive.byteLength);
  if (shape.send === 'part per rank') begin.send += own;
  if (shape.receive === 'part per rank') begin.receive += own;
  if (begin.send === begin.receive) return;
  const requirement =
    shape.send === shape.receive ? 'they must be the same memory' : `the smaller must be part ${rank} of the larger`;
  throw new UsageError(`${kind}: ${describe(send)} and ${describe(receive)} overlap; in place, ${requirement}`);
}

function unlike(kind: string, shape: Shape, { size }: Member, send: NcclBuffer, receive: NcclBuffer): UsageError {
  const from = `${kind}: cannot go from ${describe(send)} into ${describe(receive)}`;
  if (shape.send === shape.receive) return new UsageError(`${from}; they must be alike`);
  const [smaller, larger] = shape.send === 'part' ? ['sent', 'received'] : ['received', 'sent'];
  return new UsageError(
    `${from}; both must have one type, and what is ${larger} ${size} times (the ranks) as many elements as what is ${smaller}`,
  );
}

function describe(array: NcclBuffer): string {
  if (array instanceof DeviceBuffer) return `a device buffer of ${array.length} ${array.type}`;
  return `a ${array[Symbol.toStringTag]} of ${array.length}`;
}
