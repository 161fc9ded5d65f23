/** Device buffers, streams, events and graphs, on the host device; with NCCLRUN_TEST_DEVICE=cuda on GPUs. */
import assert from 'node:assert/strict';
import { existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join as joinPath } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { DeviceBuffer, gpuCount, group, init } from 'ncclrun';
import type { Communicator } from 'ncclrun';
import { collector, neighbours, usage } from './common.ts';
import type { Cases } from './common.ts';

const device = process.env['NCCLRUN_TEST_DEVICE'] === 'cuda' ? 'cuda' : 'host';
const join = (): Promise<Communicator> => init({ device });

async function bufferOf(comm: Communicator, values: readonly number[]): Promise<DeviceBuffer> {
  return comm.allocate('float32', values.length).copyFrom(Float32Array.from(values));
}

async function valuesOf(buffer: DeviceBuffer): Promise<number[]> {
  return [...(await buffer.copyTo(new Float32Array(buffer.length)))];
}

/** Of what a rank has queued that another one's end may fail. */
const ignored = (): void => undefined;

/** Waits for the other ranks without the communicator: each leaves a file in a directory of the job's. */
async function allAreHere({ rank, size }: Communicator): Promise<void> {
  const directory = joinPath(tmpdir(), `ncclrun-ranks-${process.ppid}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(joinPath(directory, String(rank)), '');
  const countOf = (): number => {
    try {
      return readdirSync(directory).length;
    } catch {
      return size; // the first one that has seen all has removed it
    }
  };
  const own = joinPath(directory, String(rank));
  while (existsSync(own) && countOf() < size) await setImmediate();
  rmSync(directory, { recursive: true, force: true });
}

export const devices: Cases = {
  async 'arrays are copied to and from device buffers'() {
    await using comm = await join();
    assert.equal(comm.device.type, device);
    using buffer = comm.allocate('float32', 8);
    assert.deepEqual([buffer.type, buffer.length, buffer.byteLength], ['float32', 8, 32]);
    assert.deepEqual(await valuesOf(buffer), Array(8).fill(0));
    const given = Float32Array.from({ length: 8 }, (_, i) => i);
    assert.equal(await buffer.copyFrom(given), buffer);
    assert.deepEqual(await valuesOf(buffer.slice(2, 5).slice(1)), [3, 4]);
    await buffer.slice(4).fill(0);
    assert.deepEqual(await valuesOf(buffer), [0, 1, 2, 3, 0, 0, 0, 0]);
    const halves = comm.allocate('bfloat16', 2);
    await halves.copyFrom(Uint16Array.of(0x3f80, 0x4000));
    assert.deepEqual(await halves.copyTo(new Uint16Array(2)), Uint16Array.of(0x3f80, 0x4000));
    assert.equal(comm.allocate('int8', 0).byteLength, 0);
  },

  async 'every collective works on device buffers'() {
    await using comm = await join();
    const { rank, size } = comm;
    const all = Array.from({ length: size }, (_, peer) => peer);
    const sum = (size * (size + 1)) / 2;
    const mine = () => bufferOf(comm, [rank + 1]);
    const many = () => comm.allocate('float32', size);
    assert.deepEqual(await valuesOf(await comm.allReduce(await mine())), [sum]);
    assert.deepEqual(await valuesOf(await comm.allReduce(await mine(), many().slice(0, 1), { op: 'max' })), [size]);
    assert.deepEqual(await valuesOf(await comm.allReduce(await mine(), { op: { preMulSum: 2 } })), [2 * sum]);
    assert.deepEqual(
      await valuesOf(await comm.allGather(await mine(), many())),
      all.map((peer) => peer + 1),
    );
    const given = await bufferOf(comm, all);
    assert.deepEqual(await valuesOf(await comm.reduceScatter(given, given.slice(rank, rank + 1))), [rank * size]);
    assert.deepEqual(await valuesOf(await comm.broadcast(await mine(), { root: size - 1 })), [size]);
    const reduced = await comm.reduce(await mine(), rank === 0 ? many().slice(0, 1) : null);
    assert.deepEqual(reduced && (await valuesOf(reduced)), rank === 0 ? [sum] : null);
    const exchanged = await comm.allToAll(await bufferOf(comm, Array<number>(size).fill(rank)), many());
    assert.deepEqual(await valuesOf(exchanged), all);
    const gathered = await comm.gather(await mine(), rank === 0 ? many() : null);
    assert.deepEqual(gathered && (await valuesOf(gathered)), rank === 0 ? all.map((peer) => peer + 1) : null);
    const scattered = await comm.scatter(rank === 0 ? await bufferOf(comm, all) : null, many().slice(0, 1));
    assert.deepEqual(await valuesOf(scattered), [rank]);
    const [next, previous] = neighbours(comm);
    const received = comm.allocate('float32', 1);
    await Promise.all([comm.send(await mine(), next), comm.recv(received, previous)]);
    assert.deepEqual(await valuesOf(received), [previous + 1]);
    await comm.barrier({ stream: comm.stream() });
    const [one, two] = [await mine(), await mine()];
    await Promise.all(group(() => (rank === 0 ? [one, two] : [one, two]).map((buffer) => comm.allReduce(buffer))));
    assert.deepEqual([...(await valuesOf(one)), ...(await valuesOf(two))], [sum, sum]);
    await using part = await comm.split(0, -rank);
    assert.deepEqual(await valuesOf(await part.broadcast(await mine())), [size]);
  },

  async 'a stream accepts many operations without waiting'() {
    await using comm = await join();
    const stream = comm.stream();
    const buffer = await bufferOf(comm, [1]);
    const ended = Array.from({ length: 6 }, () => comm.allReduce(buffer, { stream }));
    await stream.done;
    assert.deepEqual(await valuesOf(buffer), [comm.size ** 6]);
    assert.deepEqual(await Promise.all(ended), Array(6).fill(buffer));
    let turns = 0;
    const large = comm.allocate('float32', 1 << 20);
    const reduced = Promise.all(Array.from({ length: 8 }, () => comm.allReduce(large))).then(() => (turns = -turns));
    while (turns >= 0 && turns < 3) await setImmediate(turns++); // the event loop is free meanwhile
    await reduced;
  },

  async 'a stream waits for events of other streams'() {
    await using comm = await join();
    const [first, second] = [comm.stream(), comm.stream()];
    const buffer = comm.allocate('float32', 1 << 18);
    const begun = first.record();
    const copied = buffer.copyFrom(new Float32Array(buffer.length).fill(2), { stream: first });
    const reduced = comm.allReduce(buffer, { stream: first });
    const event = first.record();
    second.wait(event);
    const result = await buffer.slice(0, 2).copyTo(new Float32Array(2), { stream: second });
    assert.deepEqual([...result], [2 * comm.size, 2 * comm.size]);
    await Promise.all([copied, reduced, first.done, second.done]);
    assert.ok(event.since(begun) > 0);
    assert.equal(event.since(event), 0);
  },

  async 'copies do not block the event loop'() {
    await using comm = await join();
    await using other = await comm.split(0, comm.rank);
    const received = comm.allocate('float32', 2);
    const ready = other.allocate('float32', 1);
    if (comm.rank === 0) {
      // Rank 1 sends once it is told so, behind the copy: who waits for the copy in its call never tells it.
      const ended = [comm.recv(received, 1), received.copyFrom(Float32Array.of(5, 6))];
      const copied = received.copyTo(new Float32Array(2));
      await setImmediate();
      await other.send(ready, 1, { stream: other.stream() });
      assert.deepEqual(await copied, Float32Array.of(5, 6));
      await Promise.all(ended);
    } else if (comm.rank === 1) {
      await other.recv(ready, 0);
      await comm.send(received, 0);
    }
  },

  async 'arrays of any size are copied'() {
    await using comm = await join();
    const streams = [comm.stream(), comm.stream()];
    const graphs = await Promise.all(
      [1, (1 << 18) - 1, 1 << 18, (1 << 18) + 1, 1_234_567].map(async (length, i) => {
        const stream = streams[i % 2];
        assert.ok(stream);
        const given = Float32Array.from({ length }, (_, at) => at % 8191);
        const buffer = comm.allocate('float32', length);
        const [whole, part] = [new Float32Array(length), new Float32Array(length >> 1)];
        void buffer.copyFrom(given, { stream });
        void buffer.copyTo(whole, { stream });
        await buffer.slice(length - part.length).copyTo(part, { stream });
        assert.equal(Buffer.compare(new Uint8Array(whole.buffer), new Uint8Array(given.buffer)), 0);
        assert.ok(part.every((value, at) => value === given[length - part.length + at]));
        return { stream, given, buffer, whole };
      }),
    );
    for (const { stream, given, buffer, whole } of graphs) {
      const graph = await stream.capture(() => {
        void buffer.copyFrom(given, { stream });
        void buffer.copyTo(whole, { stream });
      });
      given.fill(comm.rank + 7);
      await graph.launch();
      assert.ok(whole.every((value) => value === comm.rank + 7));
    }
  },

  async 'a graph repeats the captured operations'() {
    await using comm = await join();
    const { rank, size } = comm;
    const [next, previous] = neighbours(comm);
    const stream = comm.stream();
    const given = Float32Array.of(1, 1);
    const buffer = comm.allocate('float32', 2);
    const other = comm.allocate('float32', 2);
    const graph = await stream.capture(() => {
      void buffer.copyFrom(given, { stream });
      void comm.allReduce(buffer, { stream });
      void comm.send(buffer, next, { stream });
      void comm.recv(other, previous, { stream });
      void group(() => [comm.allReduce(buffer, { stream }), comm.allReduce(other, { stream })]);
    });
    assert.deepEqual(await valuesOf(buffer), [0, 0]); // nothing ran
    for (const value of [1, 2, 3]) {
      given.fill(value);
      await graph.launch();
      assert.deepEqual([...(await valuesOf(buffer)), ...(await valuesOf(other))], Array(4).fill(value * size ** 2));
    }
    void graph.launch();
    void graph.launch();
    await stream.done;
    await assert.rejects(
      stream.capture(() => stream.wait(stream.record())),
      usage(/record: an event cannot be part of a graph/),
    );
    await assert.rejects(
      stream.capture(() => {
        throw new Error(`no graph at rank ${rank}`);
      }),
      /no graph at rank/,
    );
    await comm.allReduce(buffer, { stream }); // it is as before
  },

  async 'queued operations end when the communicator breaks'() {
    const comm = await join();
    const buffer = comm.allocate('float32', 1 << 16);
    const one = comm.allocate('float32', 1);
    if (comm.rank === 1) {
      // Until nobody is in the operation before any more.
      for (let peer = 0; peer < comm.size; peer++) if (peer !== 1) await comm.recv(one, peer);
      const never = comm.recv(buffer, 0);
      await setImmediate();
      comm.abort('enough');
      await assert.rejects(never, { name: 'NcclError' });
      await assert.rejects(comm.allReduce(buffer), usage(/aborted before: enough/));
    } else {
      const never = Promise.all([comm.send(one, 1), comm.recv(buffer, 1)]); // which does not send
      await assert.rejects(never, { name: 'NcclError', code: 'remoteError', message: /rank 1.*enough/ });
      await assert.rejects(comm.device.stream.done, { name: 'NcclError', code: 'remoteError' });
      await comm.device.stream.done; // it was told
    }
    await comm.close();
  },

  async 'wrong uses of device buffers are rejected'() {
    await assert.rejects(init({ device: 'host', gpu: 0 }), usage(/gpu 0 is given, but not device: 'cuda'/));
    await using comm = await join();
    const buffer = comm.allocate('float32', 4);
    await assert.rejects(buffer.copyFrom(new Float32Array(3)), usage(/a Float32Array of 3 and a buffer of 4 float32/));
    await assert.rejects(buffer.copyFrom(new Int32Array(4)), usage(/a Int32Array of 4 and a buffer of 4 float32/));
    await assert.rejects(buffer.fill(1), usage(/fill: 1 cannot fill a buffer of float32/));
    assert.throws(() => buffer.slice(3, 5), usage(/3 to 5 is no range of a buffer of 4 elements/));
    assert.throws(() => comm.allocate('float32', -1), usage(/-1 is no number of elements/));
    await assert.rejects(comm.allReduce(buffer, { type: 'int32' }), usage(/elements are float32, not int32/));
    const double = comm.allocate('float32', 8);
    await assert.rejects(
      comm.allReduce(buffer, double),
      usage(/cannot go from a device buffer of 4 float32 into a device buffer of 8 float32/),
    );
    await assert.rejects(comm.allReduce(buffer.slice(0, 3), buffer.slice(1, 4)), usage(/overlap; in place/));
    const mixed: [DeviceBuffer | Float32Array, DeviceBuffer | Float32Array] = [buffer, new Float32Array(4)];
    await assert.rejects(comm.allReduce(...mixed), usage(/one buffer is on a device, the other is a Float32Array/));
    if (device === 'host') {
      const stream = comm.stream();
      await assert.rejects(comm.allReduce(Float32Array.of(1), { stream }), usage(/a stream is for device buffers/));
    } else {
      await assert.rejects(comm.allReduce(Float32Array.of(1)), usage(/on GPU .* copyFrom/));
    }
    buffer.close();
    buffer.close();
    await assert.rejects(comm.allReduce(buffer), usage(/allReduce: the buffer was closed before/));
    assert.throws(() => buffer.slice(0), usage(/slice: the buffer was closed before/));
  },

  async 'a closed buffer lives while a stream uses it'() {
    await using comm = await join();
    const buffer = await bufferOf(comm, [1]);
    const result = comm.allocate('float32', 1);
    const ended = comm.allReduce(buffer, result);
    buffer.close();
    await ended;
    assert.deepEqual(await valuesOf(result), [comm.size]);
    const collect = collector();
    for (let turn = 0; turn < 4; turn++) {
      await comm.allReduce(comm.allocate('float32', 1 << 20), { stream: comm.stream() });
      collect();
      await setImmediate();
    }
  },

  async 'a program may end with operations queued'() {
    const comm = await join();
    await comm.barrier();
    comm.allReduce(comm.allocate('float32', 1 << 18)).catch(ignored);
    if (comm.rank === 0) comm.allReduce(comm.allocate('float32', 4), { stream: comm.stream() }).catch(ignored);
    await allAreHere(comm); // or what the others still call would fail
    process.exit(0);
  },

  async 'the error says why there is no GPU'() {
    const count = gpuCount();
    assert.ok(Number.isInteger(count) && count >= 0);
    if (count === 0)
      await assert.rejects(init({ device: 'cuda' }), { name: 'NcclError', message: /CUDA|cuda|kernels/ });
  },
};
