/** Buffers of an operation: all arrays, or all on the communicator's device. */
import type { Member } from '../calls.ts';
import type { NcclArray } from '../engine/elements.ts';
import type { Operation } from '../engine/native.ts';
import { UsageError } from '../engine/errors.ts';
import { addressOf, DeviceBuffer, deviceOf } from './buffer.ts';
import type { StreamQueue, Unqueued } from './queue.ts';
import { gpuOfStream, queueOf } from './stream.ts';
import type { DeviceStream } from './stream.ts';

/** What operations take: typed arrays, or device buffers of the communicator's device. */
export type NcclBuffer = NcclArray | DeviceBuffer;

/** An operation for a stream of the device. */
export interface OnDevice {
  readonly queue: StreamQueue;
  readonly operation: Unqueued;
}

export function isOnDevice(operation: Operation | OnDevice): operation is OnDevice {
  return 'queue' in operation;
}

type Rest = readonly [kind: number, count: number, type: number, operator: number, peer: number, factor: Operation[8]];

/** @throws UsageError for buffers that are not where the communicator is */
export function placed(
  member: Member,
  call: string,
  stream: DeviceStream | undefined,
  send: NcclBuffer | null,
  receive: NcclBuffer | null,
  [kind, ...rest]: Rest,
): Operation | OnDevice {
  const { device, handle } = member;
  if (!(send instanceof DeviceBuffer) && !(receive instanceof DeviceBuffer)) {
    const array = send ?? receive;
    if (device.gpu === null && stream === undefined) return [handle, kind, send, receive, ...rest];
    if (array !== null) throw misplaced(member, call, array);
    const operation: Unqueued = [handle, kind, null, null, ...rest];
    return { queue: queueFor(member, call, stream), operation };
  }
  const addressIn = (buffer: NcclBuffer | null) => {
    if (buffer === null) return null;
    if (!(buffer instanceof DeviceBuffer))
      throw new UsageError(`${call}: one buffer is on a device, the other is a ${buffer[Symbol.toStringTag]}`);
    if (deviceOf(buffer).gpu !== device.gpu)
      throw new UsageError(
        `${call}: the buffer is on ${nameOf(deviceOf(buffer))}, the communicator on ${nameOf(device)}`,
      );
    return addressOf(buffer, call);
  };
  const operation: Unqueued = [handle, kind, addressIn(send), addressIn(receive), ...rest];
  return { queue: queueFor(member, call, stream), operation };
}

function queueFor({ device }: Member, call: string, stream: DeviceStream = device.stream): StreamQueue {
  if (gpuOfStream(stream) !== device.gpu)
    throw new UsageError(
      `${call}: the stream is of another device than the communicator, which is on ${nameOf(device)}`,
    );
  return queueOf(stream);
}

function misplaced({ device }: Member, call: string, array: NcclArray): UsageError {
  const name = array[Symbol.toStringTag];
  if (device.gpu === null)
    return new UsageError(`${call}: a stream is for device buffers, not for a ${name}; make one with comm.allocate`);
  const remedy = 'make a buffer with comm.allocate(type, length) and copy the array into it with copyFrom';
  return new UsageError(
    `${call}: the communicator is on GPU ${device.gpu}, a ${name} is in the host's memory; ${remedy}`,
  );
}

function nameOf({ gpu }: Member['device']): string {
  return gpu === null ? 'the host device' : `GPU ${gpu}`;
}
