/** What a stream of a device does for the classes that programs see: queues, and promises that settle when it has come so far. */
import type { CommHandle, GraphHandle, Native, StreamHandle, StreamOperation } from '../engine/native.ts';
import { translated, translateError, UsageError } from '../engine/errors.ts';

/** An operation that still lacks its stream. */
export type Unqueued = StreamOperation extends readonly [...infer Start, StreamHandle] ? Readonly<Start> : never;

/** A graph, with what it needs of JavaScript's. */
export interface Captured {
  readonly graph: GraphHandle;
  readonly arrays: readonly unknown[];
  /** Whose operations it repeats. */
  readonly comms: ReadonlySet<CommHandle | null>;
}

export class StreamQueue {
  readonly #native: Native;
  readonly handle: StreamHandle;
  /** One promise for all that is queued in one step of the program, by communicator: each costs the stream a moment. */
  #steps = new Map<CommHandle | null, Promise<void>>();
  #transfers: { readonly operations: Unqueued[]; readonly ended: Promise<void> } | null = null;
  #flush: () => void = () => undefined;
  /** Of the graph that is being captured; null: there is none. */
  #captured: { readonly arrays: unknown[]; readonly comms: Set<CommHandle | null> } | null = null;
  #failure: { readonly error: unknown } | null = null;

  constructor(native: Native, gpu: number | null) {
    this.#native = native;
    this.handle = native.streamCreate(gpu);
  }

  get capturing(): boolean {
    return this.#captured !== null;
  }

  /** Queues what `work` does; resolves when it has ended, in a graph at once. `kept` is what it uses of JavaScript's. */
  queue(comm: CommHandle | null, work: () => void, held?: unknown): Promise<void> {
    this.flush();
    try {
      work();
    } catch (error) {
      this.#failure ??= { error };
      throw error;
    }
    const ended = this.ended(comm);
    if (held === undefined) return ended;
    this.#captured?.arrays.push(held);
    return ended.then(() => void held);
  }

  launch({ graph, arrays, comms }: Captured): Promise<void> {
    if (this.capturing) throw new UsageError('launch: a graph cannot be part of a graph; launch it outside of capture');
    this.flush();
    this.#native.graphLaunch(graph, this.handle);
    return Promise.all(Array.from(comms, (comm) => this.ended(comm))).then(() => void arrays);
  }

  /** Queues what nobody waits for. Not in a graph: a stream that waited for an event there would wait for a launch that may never come. */
  pass<T>(call: string, work: () => T): T {
    if (this.capturing) throw new UsageError(`${call}: an event cannot be part of a graph; do it outside of capture`);
    this.flush();
    return work();
  }

  operate(operation: Unqueued): Promise<void> {
    return this.queue(operation[0], () => this.#native.streamOperate(...operation, this.handle));
  }

  /** Like `operate`; those of one step make progress together. */
  transfer(operation: Unqueued): Promise<void> {
    if (this.#transfers === null) {
      const ended = Promise.withResolvers<void>();
      const operations: Unqueued[] = [];
      this.#transfers = { operations, ended: ended.promise };
      this.#flush = () => {
        try {
          this.#native.group(operations.map((one) => [...one, this.handle] as const));
          const waits = new Set(operations.map(([comm]) => this.ended(comm)));
          Promise.all(waits).then(() => ended.resolve(), ended.reject);
        } catch (error) {
          this.#failure ??= { error };
          ended.reject(error);
        }
      };
      queueMicrotask(() => this.flush());
    }
    this.#transfers.operations.push(operation);
    return this.#transfers.ended;
  }

  /** Queues the transfers that wait for the end of the step. */
  flush(): void {
    if (this.#transfers === null) return;
    this.#transfers = null;
    this.#flush();
  }

  /** Settles when all that the current step queues has ended; at once in a graph. */
  ended(comm: CommHandle | null): Promise<void> {
    if (this.#captured !== null) {
      this.#captured.comms.add(comm);
      return Promise.resolve();
    }
    const known = this.#steps.get(comm);
    if (known !== undefined) return known;
    const step = Promise.resolve().then(() => {
      this.flush();
      this.#steps.delete(comm);
      return this.#native.streamEnded(this.handle, comm);
    });
    step.catch((error: unknown) => {
      this.#failure ??= { error };
    });
    this.#steps.set(comm, step);
    return step;
  }

  /** Rejects with the first failure since the last call. */
  async done(): Promise<void> {
    if (this.capturing) throw new UsageError('done: the stream is being captured; launch the graph, then wait for it');
    const steps = [...this.#steps.values()];
    await Promise.allSettled(steps);
    await translated(() => this.ended(null)).catch(() => undefined);
    const failure = this.#failure;
    this.#failure = null;
    if (failure !== null) throw translateError(failure.error);
  }

  /** What `body` queues, as a graph. */
  capture(body: () => void): Captured {
    if (this.capturing) throw new UsageError('capture: the stream is being captured already');
    this.flush();
    this.#native.captureBegin(this.handle);
    const captured = { arrays: [], comms: new Set<CommHandle | null>() };
    this.#captured = captured;
    try {
      body();
      this.flush();
    } catch (error) {
      this.#endCapture();
      throw error;
    }
    return { graph: this.#endCapture(), ...captured };
  }

  #endCapture(): GraphHandle {
    this.#captured = null;
    this.#transfers = null;
    return this.#native.captureEnd(this.handle);
  }
}
