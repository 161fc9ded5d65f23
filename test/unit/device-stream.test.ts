/** Streams, events and graphs of a device over an engine that the test plays: what is queued when, and what promises settle with. */
import { describe, expect, test } from 'vitest';
import type { Unqueued } from '../../worker/device/queue.ts';
import { DeviceStream, queueOf } from '../../worker/device/stream.ts';
import { NcclError, UsageError } from '../../worker/engine/errors.ts';
import type { CommHandle, EventHandle, GraphHandle, Native, StreamHandle } from '../../worker/engine/native.ts';

const [first, second]: readonly CommHandle[] = [Object.create(null), Object.create(null)];
const handle: StreamHandle = Object.create(null);

const nameOf = (comm: CommHandle | null): string => (comm === null ? 'none' : comm === first ? 'first' : 'second');
const operation = (kind: number, comm = first): Unqueued => [
  comm ?? Object.create(null),
  kind,
  null,
  null,
  0,
  0,
  0,
  0,
  null,
];
const refuse = (): never => {
  throw new Error('refused');
};

/** The stream ends when the test says so. */
function played() {
  const log: string[] = [];
  const waits: PromiseWithResolvers<void>[] = [];
  const native: Native = Object.assign(Object.create(null), {
    streamCreate: () => handle,
    streamOperate: (comm: CommHandle, kind: number) => void log.push(`operate ${kind} of ${nameOf(comm)}`),
    group: (all: readonly Unqueued[]) => log.push(`group of ${all.map(([, kind]) => kind).join()}`),
    streamEnded(_: StreamHandle, comm: CommHandle | null) {
      const ends = Promise.withResolvers<void>();
      waits.push(ends);
      log.push(`wait with ${nameOf(comm)}`);
      return ends.promise;
    },
    streamRecord(): EventHandle {
      log.push('record');
      return Object.create(null);
    },
    streamWait: () => void log.push('wait for an event'),
    eventElapsed: () => 7,
    captureBegin: () => void log.push('capture'),
    captureEnd(): GraphHandle {
      log.push('captured');
      return Object.create(null);
    },
    graphLaunch: () => void log.push('launch'),
  });
  const stream = new DeviceStream(native, 0);
  const queue = queueOf(stream);
  const end = (): void => waits.splice(0).forEach(({ resolve }) => resolve());
  const fail = (message: string): void => {
    const error = Object.assign(new Error(message), { name: 'NativeError', code: 6 });
    waits.splice(0).forEach(({ reject }) => reject(error));
  };
  return { native, stream, queue, log, end, fail };
}

const step = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe('a stream', () => {
  test('the operations of a step share one wait for each communicator', async () => {
    const { queue, log, end } = played();
    const ended = [queue.operate(operation(3)), queue.operate(operation(4)), queue.operate(operation(5, second))];
    await step();
    expect(log).toEqual([
      'operate 3 of first',
      'operate 4 of first',
      'operate 5 of second',
      'wait with first',
      'wait with second',
    ]);
    end();
    await Promise.all(ended);
    const later = queue.operate(operation(6));
    await step();
    expect(log.slice(5)).toEqual(['operate 6 of first', 'wait with first']);
    end();
    await later;
  });

  test('transfers of a step begin together, before what is queued after them', async () => {
    const { queue, log, end, fail } = played();
    const transfers = [queue.transfer(operation(1)), queue.transfer(operation(2))];
    const after = queue.operate(operation(3));
    await step();
    expect(log).toEqual(['group of 1,2', 'operate 3 of first', 'wait with first']);
    end();
    await Promise.all([...transfers, after]);
    const alone = queue.transfer(operation(1));
    await step();
    expect(log.slice(3)).toEqual(['group of 1', 'wait with first']);
    fail('lost');
    await expect(alone).rejects.toThrow('lost');
  });

  test('transfers that cannot begin reject, and so does the stream', async () => {
    const { native, stream, queue } = played();
    Object.assign(native, {
      group() {
        throw new Error('no group');
      },
    });
    await expect(queue.transfer(operation(1))).rejects.toThrow('no group');
    Object.assign(native, { streamEnded: () => Promise.resolve() });
    await expect(stream.done).rejects.toThrow('no group');
    await stream.done;
  });

  test('its end rejects once with the first failure', async () => {
    const { stream, queue, end, fail } = played();
    const failed = queue.operate(operation(3));
    await step();
    fail('first');
    await expect(failed).rejects.toThrow('first');
    const again = queue.operate(operation(3));
    await step();
    fail('later');
    await expect(again).rejects.toThrow('later');
    const done = stream.done;
    await step();
    end();
    const error = await done.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(NcclError);
    expect(error).toMatchObject({ message: 'first', code: 'remoteError' });
    const whole = stream.done;
    await step();
    end();
    await whole;
  });

  test('work that cannot be queued throws, and the stream has failed', async () => {
    const { stream, queue, end } = played();
    expect(() => queue.queue(null, refuse)).toThrow('refused');
    const done = stream.done;
    await step();
    end();
    await expect(done).rejects.toThrow('refused');
  });
});

describe('events', () => {
  test('they are recorded after transfers, and another stream of the device may wait for them', async () => {
    const { stream, queue, log, end } = played();
    const sent = queue.transfer(operation(1));
    const event = stream.record();
    stream.wait(event);
    expect(log).toEqual(['group of 1', 'record', 'wait for an event']);
    expect(stream.record().since(event)).toBe(7);
    await step();
    end();
    await sent;
  });

  test('a stream of another device cannot wait for them', () => {
    const { native, stream } = played();
    const elsewhere = new DeviceStream(native, 1);
    expect(() => elsewhere.wait(stream.record())).toThrow(
      new UsageError('wait: the event is of another device than the stream'),
    );
  });
});

describe('graphs', () => {
  test('what is captured runs at each launch, and ends for each of its communicators', async () => {
    const { stream, queue, log, end } = played();
    const graph = await stream.capture(() => {
      void queue.operate(operation(3));
      void queue.operate(operation(4, second));
      void queue.transfer(operation(1));
    });
    await step();
    expect(log).toEqual(['capture', 'operate 3 of first', 'operate 4 of second', 'group of 1', 'captured']);
    expect(queue.capturing).toBe(false);
    for (let round = 0; round < 2; round++) {
      log.length = 0;
      let ended = false;
      const launched = graph.launch().then(() => (ended = true));
      await step();
      expect(log).toEqual(['launch', 'wait with first', 'wait with second']);
      expect(ended).toBe(false);
      end();
      await launched;
    }
  });

  test('operations of a capture end at once', async () => {
    const { stream, queue } = played();
    const ended: Promise<void>[] = [];
    await stream.capture(() =>
      ended.push(
        queue.operate(operation(3)),
        queue.queue(first ?? null, () => {}, 'kept'),
      ),
    );
    expect(ended).toHaveLength(2);
    await Promise.all(ended);
  });

  test('a capture holds neither another one, nor events, nor a launch, nor the end of the stream', async () => {
    const { stream, queue } = played();
    const graph = await stream.capture(() => {});
    const refused: Promise<void>[] = [];
    await stream.capture(() => {
      expect(queue.capturing).toBe(true);
      expect(() => queue.capture(() => {})).toThrow(new UsageError('capture: the stream is being captured already'));
      expect(() => stream.record()).toThrow(
        new UsageError('record: an event cannot be part of a graph; do it outside of capture'),
      );
      refused.push(graph.launch(), stream.done);
    });
    const reasons = (await Promise.allSettled(refused)).map((one) => (one.status === 'rejected' ? one.reason : null));
    expect(reasons).toEqual([
      new UsageError('launch: a graph cannot be part of a graph; launch it outside of capture'),
      new UsageError('done: the stream is being captured; launch the graph, then wait for it'),
    ]);
  });

  test('a capture whose body fails ends, and its transfers are gone', async () => {
    const { stream, queue, log, end } = played();
    const failing = stream.capture(() => {
      void queue.transfer(operation(1));
      throw new Error('body');
    });
    await expect(failing).rejects.toThrow('body');
    expect(log).toEqual(['capture', 'captured']);
    const sent = queue.transfer(operation(2));
    await step();
    expect(log.slice(2)).toEqual(['group of 2', 'wait with first']);
    end();
    await sent;
  });
});
