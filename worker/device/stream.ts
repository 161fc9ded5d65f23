import type { EventHandle, Native } from '../engine/native.ts';
import { translated, translateError, UsageError } from '../engine/errors.ts';
import { StreamQueue } from './queue.ts';
import type { Captured } from './queue.ts';

/** For this package: what is behind a stream. */
export let queueOf: (stream: DeviceStream) => StreamQueue;
/** For this package: the device of a stream. */
export let gpuOfStream: (stream: DeviceStream) => number | null;

/**
 * Operations, copies and fills of one stream run one after another in the order of the calls; different streams run at the same time. Made
 * by `comm.stream()`. It ends by itself when nothing refers to it any more.
 */
export class DeviceStream {
  readonly #native: Native;
  readonly #gpu: number | null;
  readonly #queue: StreamQueue;

  static {
    queueOf = (stream) => stream.#queue;
    gpuOfStream = (stream) => stream.#gpu;
  }

  /** For `stream`; programs do not call it. */
  constructor(native: Native, gpu: number | null) {
    this.#native = native;
    this.#gpu = gpu;
    this.#queue = new StreamQueue(native, gpu);
  }

  /**
   * Resolves when all that was queued before has ended; rejects with the first failure since it was last asked for (NcclError). The event
   * loop stays free.
   */
  get done(): Promise<void> {
    return this.#queue.done();
  }

  /** An event that happens when all that was queued before has ended. Throws `UsageError` within `capture`. */
  record(): DeviceEvent {
    const handle = attempt(() => this.#queue.pass('record', () => this.#native.streamRecord(this.#queue.handle)));
    return new DeviceEvent(this.#native, handle, this.#gpu);
  }

  /**
   * What is queued on this stream from now on begins after the event, which may be another stream's.
   *
   * @throws UsageError for an event of another device, or within `capture`
   */
  wait(event: DeviceEvent): void {
    if (gpuOfEvent(event) !== this.#gpu) throw new UsageError('wait: the event is of another device than the stream');
    attempt(() => this.#queue.pass('wait', () => this.#native.streamWait(this.#queue.handle, eventHandle(event))));
  }

  /**
   * A graph of what `body` queues on this stream: it runs at each `launch`, not now. Arrays that it copies from are read at each launch.
   * Promises of captured operations report nothing. Operations of the graph must be on this stream, and their buffers stay in use while it exists.
   *
   * @throws UsageError for what cannot be part of a graph, or within another capture of the stream
   */
  async capture(body: () => void): Promise<DeviceGraph> {
    return new DeviceGraph(
      this.#queue,
      attempt(() => this.#queue.capture(body)),
    );
  }
}

let eventHandle: (event: DeviceEvent) => EventHandle;
let gpuOfEvent: (event: DeviceEvent) => number | null;

/** A point of a stream. Made by `stream.record()`. */
export class DeviceEvent {
  readonly #native: Native;
  readonly #handle: EventHandle;
  readonly #gpu: number | null;

  static {
    eventHandle = (event) => event.#handle;
    gpuOfEvent = (event) => event.#gpu;
  }

  /** For `record`; programs do not call it. */
  constructor(native: Native, handle: EventHandle, gpu: number | null) {
    this.#native = native;
    this.#handle = handle;
    this.#gpu = gpu;
  }

  /**
   * Milliseconds from an earlier event to this one, as the device's clock has it. Both must have happened.
   *
   * @throws NcclError for an event that has not happened
   */
  since(earlier: DeviceEvent): number {
    return attempt(() => this.#native.eventElapsed(eventHandle(earlier), this.#handle));
  }
}

/** Calls that a stream repeats in order. Made by `stream.capture()`. */
export class DeviceGraph {
  readonly #queue: StreamQueue;
  readonly #captured: Captured;

  /** For `capture`; programs do not call it. */
  constructor(queue: StreamQueue, captured: Captured) {
    this.#queue = queue;
    this.#captured = captured;
  }

  /**
   * Queues all of it on the stream that it was captured on. Resolves when it has ended.
   *
   * @throws NcclError `remoteError` if another rank was lost, `invalidUsage` if a communicator of the graph was closed or aborted
   */
  async launch(): Promise<void> {
    await translated(() => this.#queue.launch(this.#captured));
  }
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw translateError(error);
  }
}
