/**
 * The interface of ncclrun for programs:
 *
 *     import { init } from 'ncclrun';
 *     await using comm = await init();
 *     const sum = await comm.allReduce(new Float32Array([comm.rank]));
 */
export { Communicator } from './communicator.ts';
export type { CommHost, CommNic } from './comm-host.ts';
export type { OperationOptions, ReduceOptions, RootOptions, RootReduceOptions, Signal } from './calls.ts';
export { Device } from './device/device.ts';
export { DeviceBuffer } from './device/buffer.ts';
export type { StreamOptions } from './device/buffer.ts';
export { DeviceEvent, DeviceGraph, DeviceStream } from './device/stream.ts';
export type { NcclBuffer } from './device/operands.ts';
export type { ElementType, NcclArray } from './engine/elements.ts';
export { NativeLoadError } from './engine/load.ts';
export { NcclError, UsageError } from './engine/errors.ts';
export type { NcclErrorCode } from './engine/errors.ts';
export type { PreMultipliedSum, ReduceOperator } from './operators.ts';
export { Memory, allocate } from './memory.ts';
export { group } from './group.ts';
export { gpuCount, init, uniqueId } from './init.ts';
export type { InitOptions, Membership } from './init.ts';
