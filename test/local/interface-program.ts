/** A rank that tries one aspect of the program interface, named by its argument; it fails with an assertion. */
import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import { NcclError, UsageError, init, uniqueId } from 'ncclrun';
import type { Communicator } from 'ncclrun';

const usage = (message: RegExp) => ({ name: 'UsageError', message });
const neighbours = ({ rank, size }: Communicator) => [(rank + 1) % size, (rank + size - 1) % size] as const;

/** Runs the script in a worker thread until it says that it is busy, then terminates it. */
async function terminated(script: string): Promise<void> {
  const code = `
    const { parentPort } = require('node:worker_threads');
    import('ncclrun')
      .then(async ({ init, uniqueId }) => {${script}})
      .catch(() => undefined) // another rank was quicker and aborted
      .then(() => parentPort.postMessage('busy'));`;
  const worker = new Worker(code, { eval: true, execArgv: [] });
  await new Promise((resolve, reject) => {
    worker.on('message', resolve);
    worker.on('error', reject);
  });
  await worker.terminate();
}

const cases: Record<string, () => Promise<void>> = {
  async describes() {
    const comm = await init();
    assert.equal(comm.size, Number(process.env['NCCLRUN_SIZE']));
    assert.equal(comm.rank, Number(process.env['NCCLRUN_RANK']));
    assert.equal(comm.localRank, Number(process.env['NCCLRUN_LOCAL_RANK']));
    assert.equal(comm.localSize, comm.size);
    assert.equal(comm.host, 0);
    assert.equal(comm.hosts.length, 1);
    await comm.close();
    assert.equal(await comm.close(), undefined);
    await assert.rejects(comm.barrier(), usage(/barrier: the communicator was closed before/));
    assert.throws(() => comm.abort('no'), usage(/closed before/));
    await assert.rejects(init(), usage(/has joined the communicator of the job before/));
  },

  async reduces() {
    await using comm = await init();
    const ranks = (comm.size * (comm.size - 1)) / 2;
    for (const Type of [Float32Array, Float64Array, Int32Array, Uint32Array, Int8Array, Uint8Array]) {
      const send = new Type(1000).fill(comm.rank);
      const receive = new Type(1000);
      assert.equal(await comm.allReduce(send, receive), receive);
      assert.deepEqual(receive, new Type(1000).fill(ranks), Type.name);
      assert.deepEqual(send, new Type(1000).fill(comm.rank));
    }
    const wide = new BigInt64Array(3).fill(BigInt(comm.rank));
    assert.equal(await comm.allReduce(wide), wide);
    assert.deepEqual(wide, new BigInt64Array(3).fill(BigInt(ranks)));
    assert.deepEqual(await comm.allReduce(Float32Array.of(comm.rank), { op: 'max' }), Float32Array.of(comm.size - 1));
    assert.equal((await comm.allReduce(new Float32Array(0))).length, 0);
    const part = new Float32Array(10).subarray(2, 4).fill(1);
    await comm.allReduce(part);
    assert.deepEqual(new Float32Array(part.buffer), Float32Array.of(0, 0, comm.size, comm.size, 0, 0, 0, 0, 0, 0));
    const shared = new Float32Array(new SharedArrayBuffer(16)).fill(1);
    assert.deepEqual([...(await comm.allReduce(shared))], [comm.size, comm.size, comm.size, comm.size]);
  },

  async 'keeps order without waiting'() {
    await using comm = await init();
    const arrays = Array.from({ length: 200 }, (_, i) => new Float32Array(1 + i * 37).fill(i));
    await Promise.all(arrays.map((array) => comm.allReduce(array)));
    for (const [i, array] of arrays.entries()) assert.ok(array.every((value) => value === i * comm.size));
    // Not awaited: close waits for it.
    const last = new Float32Array(1 << 20).fill(1);
    const ended = comm.allReduce(last);
    await comm.close();
    await ended;
    assert.ok(last.every((value) => value === comm.size));
  },

  async 'keeps the event loop free'() {
    await using comm = await init();
    let ticks = 0;
    const timer = setInterval(() => ++ticks, 1);
    if (comm.rank === 0) await new Promise((resolve) => setTimeout(resolve, 100));
    await comm.barrier();
    clearInterval(timer);
    assert.ok(comm.rank === 0 || ticks > 10, `${ticks} ticks`);
  },

  async exchanges() {
    await using comm = await init();
    const [next, previous] = neighbours(comm);
    const large = new Float64Array(1 << 20).fill(comm.rank); // more than any connection holds
    const got = new Float64Array(1 << 20);
    const [, received] = await Promise.all([comm.send(large, next), comm.recv(got, previous)]);
    assert.equal(received, got);
    assert.ok(got.every((value) => value === previous));
    // The order in which they begin does not matter, nor do operations between.
    for (let turn = 0; turn < 50; ++turn) {
      const numbers = Array.from({ length: comm.size }, () => new Int32Array(1));
      const mine = Int32Array.of(comm.rank + turn);
      const all = numbers.map((number, peer) => (peer === comm.rank ? null : comm.recv(number, peer)));
      const sent = numbers.map((_, peer) => (peer === comm.rank ? null : comm.send(mine, peer)));
      const barrier = comm.barrier();
      await Promise.all([...all, ...sent, barrier]);
      for (const [peer, number] of numbers.entries()) if (peer !== comm.rank) assert.equal(number[0], peer + turn);
    }
    await comm.nodeBarrier();
  },

  async 'refuses what cannot be'() {
    await using comm = await init();
    await assert.rejects(
      comm.allReduce(new Float32Array(3), new Float32Array(4)),
      usage(/a Float32Array of 3 into a Float32Array of 4/),
    );
    const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
      [new Int16Array(3), {}, /is a Int16Array; known are .*Float32Array/],
      [new Float32Array(3), new Int32Array(3), /they must be alike/],
      [new Float32Array(3), { op: 'xor' }, /operator 'xor' is unknown; known are sum, prod, max, min$/],
      [new Float32Array(new ArrayBuffer(8, { maxByteLength: 16 })), {}, /resizable buffer/],
    ];
    for (const [array, second, message] of wrong) {
      await assert.rejects(
        Promise.resolve(Reflect.apply(comm.allReduce.bind(comm), comm, [array, second])),
        usage(message),
      );
    }
    await assert.rejects(comm.send(new Float32Array(1), comm.size), usage(/rank 3 does not exist; .* ranks 0 to 2/));
    await assert.rejects(comm.recv(new Float32Array(1), -1), usage(/rank -1 does not exist/));
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(comm.size)); // and goes on
  },

  async 'makes communicators of some ranks'() {
    await using comm = await init();
    if (comm.rank === 2) {
      await comm.barrier();
      return;
    }
    const id = comm.rank === 0 ? uniqueId() : new Uint8Array(128);
    await (comm.rank === 0 ? comm.send(id, 1) : comm.recv(id, 0));
    await using pair = await init({ uniqueId: id, size: 2, rank: 1 - comm.rank });
    assert.deepEqual([pair.size, pair.rank], [2, 1 - comm.rank]);
    assert.deepEqual(await pair.allReduce(Int32Array.of(comm.rank + 1)), Int32Array.of(3));
    await comm.barrier();
  },

  async 'aborts everywhere'() {
    const comm = await init();
    if (comm.rank === 1) {
      await comm.barrier(); // nobody is in init any more
      comm.abort('enough');
      await assert.rejects(comm.barrier(), usage(/barrier: the communicator was aborted before: enough/));
    } else {
      const waiting = comm.barrier().then(() => comm.allReduce(new Float32Array(1 << 16)));
      await assert.rejects(waiting, (error) => {
        assert.ok(error instanceof NcclError);
        assert.equal(error.code, 'remoteError');
        assert.match(error.message, /rank 1/);
        return true;
      });
    }
    await comm.close();
  },

  async 'ends operations under way when it aborts'() {
    const comm = await init();
    const waiting = comm.barrier().then(() => {
      if (comm.rank !== 0) return comm.allReduce(new Float32Array(1 << 16));
      const never = comm.recv(new Float32Array(1 << 16), 1); // which does not send
      comm.abort('enough');
      return never;
    });
    await assert.rejects(waiting, { name: 'NcclError' });
    await comm.close();
  },

  async 'may end without closing'() {
    const comm = await init();
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(comm.size));
  },

  async 'may exit without closing'() {
    const comm = await init();
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(comm.size));
    await comm.barrier();
    process.exit(0);
  },

  async 'ends with its worker thread, in the middle of operations'() {
    await terminated(`
      const comm = await init();
      for (let i = 0; i < 100; ++i) comm.allReduce(new Float32Array(1 << 20)).catch(() => undefined);
      if (comm.rank > 0) comm.recv(new Float32Array(1 << 20), 0).catch(() => undefined);`);
  },

  async 'ends with its worker thread, while it is closing'() {
    await terminated(`
      const comm = await init();
      if (comm.rank > 0) comm.recv(new Float32Array(1 << 20), 0).catch(() => undefined);
      comm.close().catch(() => undefined);`);
  },

  async terminatedWhileJoining() {
    await terminated(`
      init({ uniqueId: uniqueId(), size: 2, rank: 0 }).catch(() => undefined); // nobody else has this id
      await new Promise((resolve) => setTimeout(resolve, 20));`);
  },
};

const name = process.argv[2] ?? '';
const run = cases[name];
if (run === undefined) throw new UsageError(`no case ${name}; there are: ${Object.keys(cases).join(', ')}`);
await run();
