/**
 * Every function of the native addon (native/binding), declared once, in the same order as native/binding/module.cc exports them.
 * The boundary is thin: arguments are checked and defaults filled in TypeScript; absent values are null, never undefined.
 * A failing call throws NativeError with `code` (ncclResult_t or an errno name).
 */
import type { CommHost } from '../comm-host.ts';
import type { GpuHealth } from '../../control/messages/host-health.ts';
import { BUFFER_COLLECTIVES } from '../../control/collectives.ts';

/** An open file descriptor or mapping owned by native code; closed by `close` or the garbage collector. */
export interface NativeHandle {
  readonly __native: unique symbol;
}

export type LocalServerEvent =
  /** A process of our uid connected (others are refused before this). `pid` as this host sees it. */
  | { readonly type: 'connected'; readonly connection: number; readonly pid: number }
  /** One that would connect cannot be served: descriptors have run out. */
  | { readonly type: 'refused'; readonly connection: number; readonly reason: string }
  /** One frame; `payload` is a copy that the receiver owns. */
  | {
      readonly type: 'frame';
      readonly connection: number;
      readonly kind: number;
      readonly flags: number;
      readonly subject: number;
      readonly request: number;
      readonly payload: Uint8Array;
    }
  /** The process itself is gone (pidfd), whoever still holds its socket. `waitStatus` of a child of ours, `stderr` the end of a tool's stderr. */
  | { readonly type: 'died'; readonly connection: number; readonly waitStatus: number | null; readonly stderr: string }
  /** End of stream, or bytes that are no frame; `reason` is empty for a clean end. */
  | { readonly type: 'closed'; readonly connection: number; readonly reason: string }
  /** Everything that had been sent before a localServerCatchUp has been reported; one for each, in their order. */
  | { readonly type: 'caughtUp'; readonly connection: number };

export interface LocalServer {
  readonly __localServer: unique symbol;
}

/** One rank's membership in a communicator. Failed calls give the sentence of ncclGetLastError. */
export type CommHandle = { readonly __communicator: unique symbol };

interface CommInfo {
  readonly rank: number;
  readonly size: number;
  readonly localRank: number;
  readonly localSize: number;
  readonly host: number;
  readonly hosts: readonly CommHost[];
}

/** What commInit needs. */
interface Job {
  readonly uniqueId: Uint8Array;
  readonly size: number;
  readonly rank: number;
}

/** Operations in the order of their numbers in native/binding/operation.cc. */
export const OPERATION_KINDS = ['barrier', 'send', 'receive', ...BUFFER_COLLECTIVES] as const;
export type OperationKind = (typeof OPERATION_KINDS)[number];

/** Number of the operation in the addon. */
export function operationNumber(kind: OperationKind): number {
  return OPERATION_KINDS.indexOf(kind);
}

/**
 * One operation. `count` in elements, as the C call counts; `type` is an ncclDataType_t, `operator` an ncclRedOp_t, `peer` the other end or
 * the root; 0 where the kind has none. The elements of the buffers have the size of `type`; a buffer that this rank does not use is null.
 * `factor` is one element, by which a pre-multiplied sum multiplies this rank's; null for any other operator.
 */
export type Operation = readonly [
  comm: CommHandle,
  kind: number,
  send: ArrayBufferView | null,
  receive: ArrayBufferView | null,
  count: number,
  type: number,
  operator: number,
  peer: number,
  factor: Uint8Array | null,
];

/** Memory of a device. The device is a GPU by CUDA's number, or null: the host device. */
export type MemoryHandle = { readonly __deviceMemory: unique symbol };

/** Where a buffer begins in memory of a device; `offset` in bytes. */
export type DeviceAddress = readonly [memory: MemoryHandle, offset: number];

export type StreamHandle = { readonly __deviceStream: unique symbol };
export type EventHandle = { readonly __deviceEvent: unique symbol };
export type GraphHandle = { readonly __deviceGraph: unique symbol };

/** An operation on buffers of a device, in its turn on a stream of that device. */
export type StreamOperation = readonly [
  comm: CommHandle,
  kind: number,
  send: DeviceAddress | null,
  receive: DeviceAddress | null,
  count: number,
  type: number,
  operator: number,
  peer: number,
  factor: Uint8Array | null,
  stream: StreamHandle,
];

/** All operations up to number `ended` have ended; `failures` has the numbers of those that failed. */
export type Watcher = (ended: number, failures: readonly (readonly [number: number, error: Error])[]) => void;

/** A GPU as NVML knows it. */
export interface NvmlGpu {
  /** PCI address as NVML writes it: `00000000:1B:00.0`. */
  readonly busId: string;
  readonly index: number;
  /** 90 is 9.0. */
  readonly computeCapability: number;
  /** By number; `remote` is the PCI address at the other end (null: unknown). More than the GPU may have. */
  readonly links: readonly { readonly active: boolean; readonly remote: string | null }[];
  /** NVLink-C2C: links that are up, MB/s of one. */
  readonly c2c: { readonly count: number; readonly bandwidth: number } | null;
}

type XidEvents = { readonly __xidEvents: unique symbol };

/** A GPU's memory in bytes, and who has a context there. */
export interface NvmlMemory {
  /** PCI address as NVML writes it. */
  readonly busId: string;
  readonly total: number;
  readonly free: number;
  /** `used` is null if NVML does not report it. */
  readonly processes: readonly { readonly pid: number; readonly used: number | null }[];
}

/** A GPU's clocks, throttling, ECC errors and PCIe link, as GpuHealth has them. */
interface NvmlHealth extends Omit<GpuHealth, 'address'> {
  /** PCI address as NVML writes it. */
  readonly busId: string;
}

/** A GPU that CUDA shows. */
export interface CudaGpu {
  readonly busId: string;
  readonly computeCapability: number;
  /** Network cards may read and write its memory. */
  readonly gpuDirect: boolean;
}

/** A port of an InfiniBand or RoCE card. */
export interface VerbsPort {
  /** Of the card. */
  readonly name: string;
  /** From 1. */
  readonly port: number;
  readonly active: boolean;
  /** RoCE. */
  readonly ethernet: boolean;
  /** Of the card, 0x and hexadecimal, as NCCL prints it. */
  readonly guid: string;
  /** One bit each, as the InfiniBand specification has them; 0: unknown. */
  readonly activeWidth: number;
  readonly activeSpeed: number;
  readonly maxQueuePairs: number;
  readonly firmware: string;
  readonly lid: number;
  /** 1: 256 bytes, to 5: 4096. */
  readonly activeMtu: number;
  /** Those in use. */
  readonly gids: readonly { readonly index: number; readonly gid: string }[];
}

export interface Native {
  // process.cc
  /** Makes this process the reaper of orphaned descendants (PR_SET_CHILD_SUBREAPER). */
  setChildSubreaper(): void;
  /** Kills this process, stopped or not, after so many milliseconds, of which the last call counts; 0: not any more. */
  endAfter(milliseconds: number): void;
  /** `count` different TCP ports from `first` to `last` (0: of those that the system chooses) that are free now on every address. */
  freePorts(count: number, first: number, last: number): readonly number[];
  /**
   * Ends a TCP connection that is not acknowledged what it sent, or its probes, for so long (TCP_USER_TIMEOUT, RFC 5482); 0: the system's own limit.
   * Any other descriptor stays as it is.
   */
  tcpUserTimeout(descriptor: number, milliseconds: number): void;
  /**
   * Says the end of a TCP connection and drops what has come: the descriptor is then to be closed. Closing it with bytes unread would send a
   * reset instead, and only once (RFC 2525, 2.17): if that is lost, the other side waits for ever.
   */
  tcpEnd(descriptor: number): void;
  /** Takes the exit status of a child that Node did not start and that has ended. */
  reapChild(pid: number): void;
  /** A descriptor of the kernel's log whose reads give one record each, from now on, and do not wait. Its owner closes it. */
  kernelLogOpen(): number;
  /** Runs a program of the PATH that reads nothing to its end; `output` is what it wrote, on stdout and stderr alike. */
  toolRun(words: readonly string[]): Promise<{ readonly waitStatus: number; readonly output: string }>;
  /**
   * Sets whether this thread blocks SIGUSR1. Node blocks it for its lifetime where the signal must not open a debugger (--disable-sigusr1),
   * so a handler would never run.
   */
  blockSigusr1(blocked: boolean): void;

  // output.cc
  /**
   * Copies `bytes` to `offset` of `target` with `prefix` at the start of every line (`atLineStart`: also before the first byte) and returns
   * the length of that; copies nothing where it does not fit.
   */
  prefixLines(target: Uint8Array, offset: number, bytes: Uint8Array, prefix: string, atLineStart: boolean): number;
  /** Gives a pipe room for `bytes`, if `descriptor` is one and the system lets us. */
  widenPipe(descriptor: number, bytes: number): void;
  /** Makes `descriptor` another one of the open file that `by` is one of; the programs that this process starts get it. */
  replaceDescriptor(descriptor: number, by: number): void;

  // local_server.cc
  /** Listens on a Unix socket (mode 0600) and serves frames on a thread of its own; the callback runs on the event loop. */
  localServerOpen(path: string, maxPayloadBytes: number, onEvent: (event: LocalServerEvent) => void): LocalServer;
  /** The same on a socket that listens already; the descriptor is the server's from now on. While it is open it keeps the event loop running. */
  localServerAdopt(
    descriptor: number,
    maxPayloadBytes: number,
    onEvent: (event: LocalServerEvent) => void,
  ): LocalServer;
  /**
   * Starts a guardian or an aggregator (`words`: its path and arguments) and serves its socket (descriptor 3) as connection 1 of a server of its
   * own. Its `died` comes with the wait status.
   */
  childStart(words: readonly string[], onEvent: (event: LocalServerEvent) => void): LocalServer;
  /**
   * Starts a program of the PATH in a session of its own and serves the frames on its stdin and stdout as connection 1 of a server of its
   * own; `changes` (NAME=value) to our environment are its alone. Its `died` carries the wait status and the last part of its
   * stderr.
   */
  toolStart(
    words: readonly string[],
    changes: readonly string[],
    onEvent: (event: LocalServerEvent) => void,
  ): LocalServer;
  /** Frames that are encoded already. */
  localServerWrite(server: LocalServer, connection: number, bytes: Uint8Array): void;
  /**
   * Serves the frames of two descriptors (pipes or sockets, duplicated here and made non-blocking) as connection 1 of a server of its own.
   * After its `closed`, or once all is sent that came before a disconnect, its `died` comes.
   */
  streamsServe(input: number, output: number, onEvent: (event: LocalServerEvent) => void): LocalServer;
  /** Sends SIGKILL to the guardian or tool if it is still alive; `withProcessGroup`: also to its process group. */
  childKill(server: LocalServer, withProcessGroup: boolean): void;
  /** The process number of the guardian or tool if a signal has stopped it, else 0. */
  childStopped(server: LocalServer): number;
  localServerSend(
    server: LocalServer,
    connection: number,
    kind: number,
    flags: number,
    subject: number,
    request: number,
    payload: Uint8Array,
    handles: readonly NativeHandle[],
  ): void;
  localServerDisconnect(server: LocalServer, connection: number): void;
  /** Asks for `caughtUp`, which follows every frame that was sent before this call. */
  localServerCatchUp(server: LocalServer): void;
  /** Stops the thread and removes the socket. */
  localServerClose(server: LocalServer): void;
  /** Closes every server and ends this process with a status of 0 to 255: nothing of Node's runs any more. */
  exitNow(status: number): never;

  // shared_memory.cc
  /** A sealed, read-only memfd with these bytes; `name` is how /proc shows it. */
  sealedMemory(bytes: Uint8Array, name: string): NativeHandle;
  /** A zeroed memfd of this size (sparse: untouched pages cost nothing). */
  segmentCreate(bytes: number): NativeHandle;
  /** Raises the abort word at `abortOffset` and rings `doorbells` doorbells at `doorbellOffset`. True if it was the first. */
  segmentAbort(
    segment: NativeHandle,
    abortOffset: number,
    doorbellOffset: number,
    doorbells: number,
    rank: number,
    result: number,
    sentence: string,
  ): boolean;
  /** A telemetry page; `view` stays readable after the engine's death. */
  telemetryCreate(): { readonly handle: NativeHandle; readonly view: Uint8Array };
  /** A flight recorder, likewise. */
  recorderCreate(): { readonly handle: NativeHandle; readonly view: Uint8Array };
  close(handle: NativeHandle): void;

  // held_name.cc
  /** Holds a name among all processes of this network namespace until `close`, or the end of this process; null: another socket holds it. */
  nameHold(name: string): NativeHandle | null;
  /** The process that holds a name, as the kernel says it; `pid` is 0 outside our pid namespace. Null: nobody holds it, or nobody more can ask. */
  nameHolder(name: string): { readonly pid: number; readonly uid: number } | null;

  // communicator.cc
  version(): string;
  /** 128 bytes. */
  getUniqueId(): Uint8Array;
  /** The communicator of all ranks of the job, as ncclrun's environment names it; invalid usage outside a job. */
  getJob(): Job;
  /** The engine connects to NCCLRUN_AGENT and begins to join, on a GPU by CUDA's number, or null: the host device. Until it is ready, the communicator can only be aborted. */
  commInit(uniqueId: Uint8Array, size: number, rank: number, gpu: number | null): CommHandle;
  /** Once after commInit; resolves when the communicator is ready. */
  commReady(comm: CommHandle): Promise<void>;
  /** All ranks with one colour get a communicator; a rank whose colour is null gets null. Splits of one communicator follow one another. */
  commSplit(comm: CommHandle, color: number | null, key: number): Promise<CommHandle | null>;
  commInfo(comm: CommHandle): CommInfo;
  nodeBarrier(comm: CommHandle): Promise<void>;
  abort(comm: CommHandle, reason: string): void;
  /** Finalizes and destroys; a second close of one communicator is a named error. */
  commClose(comm: CommHandle): Promise<void>;

  // operation.cc
  /** Sets the watcher before a communicator's first operation. The watcher receives completions on the event loop, in the order of the starts. */
  commWatch(comm: CommHandle, watcher: Watcher): void;
  /**
   * Begins an operation. Returns 0 if it has ended, so that its buffers are free; else its number among the communicator's operations, which
   * the watcher will receive. Waits up to 0.2 ms for a small operation.
   */
  operate(...operation: Operation): number;
  /** Queues an operation, or adds it to the graph that is being captured. */
  streamOperate(...operation: StreamOperation): void;
  /** Begins operations that make progress together, in whatever order they are listed; returns for each the result of `operate`, 0 for one on a stream. */
  group(operations: readonly (Operation | StreamOperation)[]): readonly number[];

  // memory.cc
  /** Zeroed memory of the engine, freed when the buffer is collected. */
  memoryAllocate(bytes: number): ArrayBuffer;
  /** Detaches such a buffer. Its memory stays until its pending operations have ended. */
  memoryFree(buffer: ArrayBuffer): void;

  // device.cc
  /** How many GPUs CUDA shows; 0 where it cannot be used. */
  gpuCount(): number;
  /** Zeroed. Freed when it is collected. */
  deviceAllocate(gpu: number | null, bytes: number): MemoryHandle;
  /** What is queued or in a graph still finds it. */
  deviceFree(memory: MemoryHandle): void;

  // device_stream.cc
  streamCreate(gpu: number | null): StreamHandle;
  /** Queues a copy of all of `array`, which must stay, to or from memory of the stream's device. */
  streamCopy(
    stream: StreamHandle,
    memory: MemoryHandle,
    offset: number,
    array: ArrayBufferView,
    toDevice: boolean,
  ): void;
  /** Queues the setting of all bytes to `value`, 0 to 255. */
  streamFill(stream: StreamHandle, memory: MemoryHandle, offset: number, bytes: number, value: number): void;
  /** Resolves when all that is queued now has ended; with a communicator, rejects if that broke. */
  streamEnded(stream: StreamHandle, comm: CommHandle | null): Promise<void>;
  /** An event that happens when all that is queued now has ended. */
  streamRecord(stream: StreamHandle): EventHandle;
  /** What is queued from now on begins after the event. */
  streamWait(stream: StreamHandle, event: EventHandle): void;
  /** Milliseconds between two events that have happened. */
  eventElapsed(from: EventHandle, to: EventHandle): number;
  /** What is queued from now on, up to captureEnd, becomes a graph instead of running. */
  captureBegin(stream: StreamHandle): void;
  captureEnd(stream: StreamHandle): GraphHandle;
  graphLaunch(graph: GraphHandle, stream: StreamHandle): void;

  // topology.cc: a string is the reason why the library is missing, without a final full stop
  /** Starts NVIDIA's driver, which may take seconds: on a thread of its own. */
  nvmlGpus(): Promise<readonly NvmlGpu[] | string>;
  /** In CUDA's order; starts CUDA's driver. */
  cudaGpus(): readonly CudaGpu[] | string;
  /** Of all InfiniBand and RoCE cards. */
  verbsPorts(): readonly VerbsPort[] | string;

  // gpu_memory.cc
  /** Memory of the GPUs that NVML reports; a string is the reason of a failure. Starts NVIDIA's driver on a thread of its own, but no context. */
  gpuMemory(): Promise<readonly NvmlMemory[] | string>;

  // gpu_health.cc
  /** What NVML measures of each GPU; a string is the reason of a failure. Likewise on a thread of its own. */
  gpuHealth(): Promise<readonly NvmlHealth[] | string>;

  // xid_events.cc
  /** Listens to NVML for errors of GPUs, on a thread of its own, until it is closed. Where there is no NVML there are none. */
  xidEventsOpen(): XidEvents;
  /** Those that came since the last call. */
  xidEventsTake(events: XidEvents): readonly { readonly busId: string; readonly code: number }[];
  xidEventsClose(events: XidEvents): void;
}
