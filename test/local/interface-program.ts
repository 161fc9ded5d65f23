/** A rank that tries one aspect of the program interface, named by its argument; it fails with an assertion. */
import assert from 'node:assert/strict';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { Worker } from 'node:worker_threads';
import { NcclError, UsageError, group, init, uniqueId } from 'ncclrun';
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

  async 'gathers, scatters, broadcasts and reduces to one'() {
    await using comm = await init();
    const { rank, size } = comm;
    const ranks = Array.from({ length: size }, (_, peer) => peer);
    const sum = (size * (size - 1)) / 2;
    for (const Type of [Float64Array, Float32Array, Int8Array, Uint8ClampedArray, Uint32Array]) {
      const part = Type.of(rank, rank + 1, 100);
      const everything = Type.from(ranks.flatMap((peer) => [peer, peer + 1, 100]));
      const receive = new Type(3 * size);
      assert.equal(await comm.allGather(part, receive), receive);
      assert.deepEqual(receive, everything, Type.name);
      receive.fill(0).set(part, 3 * rank);
      await comm.allGather(receive.subarray(3 * rank, 3 * rank + 3), receive);
      assert.deepEqual(receive, everything, `${Type.name} in place`);

      const mine = await comm.reduceScatter(Type.from(ranks.flatMap((peer) => [peer, rank])), new Type(2));
      assert.deepEqual(mine, Type.of(rank * size, sum));
      const whole = Type.from(ranks.flatMap((peer) => [peer, rank]));
      await comm.reduceScatter(whole, whole.subarray(2 * rank, 2 * rank + 2), { op: 'max' });
      assert.deepEqual(whole.subarray(2 * rank, 2 * rank + 2), Type.of(rank, size - 1));

      for (const root of ranks) {
        const word = rank === root ? Type.of(root, 7, 9) : new Type(3);
        assert.equal(await comm.broadcast(word, { root }), word);
        assert.deepEqual(word, Type.of(root, 7, 9));
        const into = new Type(3);
        await comm.broadcast(rank === root ? word : null, into, { root });
        assert.deepEqual(into, word);

        const given = Type.of(rank, 1);
        const reduced = rank === root ? new Type(2) : null;
        assert.equal(await comm.reduce(given, reduced, { root }), reduced);
        if (reduced !== null) assert.deepEqual(reduced, Type.of(sum, size));
        assert.deepEqual(given, Type.of(rank, 1));
        await comm.reduce(given, { root, op: 'min' });
        assert.deepEqual(given, Type.of(rank === root ? 0 : rank, 1));
      }
    }
    // Part by part, to and from everybody.
    const parts = Float64Array.from(ranks.flatMap((peer) => [rank, peer]));
    const turned = Float64Array.from(ranks.flatMap((peer) => [peer, rank]));
    assert.deepEqual(await comm.allToAll(parts, new Float64Array(2 * size)), turned);
    assert.deepEqual(await comm.allToAll(parts), turned);
    for (const root of ranks) {
      const isRoot = rank === root;
      const gathered = await comm.gather(Int32Array.of(rank, root), isRoot ? new Int32Array(2 * size) : null, { root });
      const all = Int32Array.from(ranks.flatMap((peer) => [peer, root]));
      assert.deepEqual(gathered, isRoot ? all : null);
      assert.deepEqual(await comm.scatter(gathered, new Int32Array(2), { root }), Int32Array.of(rank, root));
    }
    // One without elements between others.
    assert.equal((await comm.allGather(new Float32Array(0), new Float32Array(0))).length, 0);
  },

  async 'averages, and multiplies before it sums'() {
    await using comm = await init();
    const { rank, size } = comm;
    assert.deepEqual(await comm.allReduce(Float64Array.of(rank), { op: 'avg' }), Float64Array.of((size - 1) / 2));
    assert.deepEqual(
      await comm.allReduce(Int32Array.of(-rank), { op: 'avg' }),
      Int32Array.of(-Math.trunc((size - 1) / 2)),
    );
    const op = { preMulSum: rank + 1 } as const; // each rank has its own
    const sum = (size * (size + 1)) / 2;
    for (const Type of [Float16Array, Float32Array, Float64Array, Int8Array, Uint8Array, Int32Array, Uint32Array])
      assert.deepEqual(await comm.allReduce(Type.of(1, 2), { op }), Type.of(sum, 2 * sum), Type.name);
    const wide = { op: { preMulSum: BigInt(rank + 1) } } as const;
    for (const Type of [BigInt64Array, BigUint64Array])
      assert.deepEqual(await comm.allReduce(Type.of(1n, 2n), wide), Type.of(BigInt(sum), BigInt(2 * sum)));
    // One is 0x3f80 in bfloat16, 0x38 in e4m3 and 0x3c in e5m2; six is 0x40c0, 0x4c and 0x46; three ranks have six together.
    const six = (one: number, three: number) => (size === 1 ? one : three);
    const bfloat16 = { op, type: 'bfloat16' } as const;
    assert.deepEqual(await comm.allReduce(Uint16Array.of(0x3f80), bfloat16), Uint16Array.of(six(0x3f80, 0x40c0)));
    const e4m3 = { op, type: 'float8e4m3' } as const;
    assert.deepEqual(await comm.allReduce(Uint8Array.of(0x38), e4m3), Uint8Array.of(six(0x38, 0x4c)));
    const e5m2 = { op, type: 'float8e5m2' } as const;
    assert.deepEqual(await comm.allReduce(Uint8Array.of(0x3c), e5m2), Uint8Array.of(six(0x3c, 0x46)));
  },

  async 'takes types that no array has'() {
    await using comm = await init();
    const bfloat16 = { type: 'bfloat16' } as const;
    const three = 0x4040;
    const sums: Readonly<Record<number, number>> = { 1: 0x4040, 3: 0x4110 }; // 3 and 9
    assert.deepEqual(await comm.allReduce(Uint16Array.of(three), bfloat16), Uint16Array.of(sums[comm.size] ?? 0));
    const half = await comm.allReduce(Uint16Array.of(0x3c00), { type: 'float16', op: 'max' });
    assert.deepEqual(half, Uint16Array.of(0x3c00));
    const octets = new Uint8Array(comm.size);
    await comm.allGather(Uint8Array.of(comm.rank), octets, { type: 'float8e5m2' });
    assert.deepEqual([...octets.keys()], [...octets]);
    await comm.broadcast(octets.fill(comm.rank), { type: 'float8e4m3', root: comm.size - 1 });
    assert.deepEqual(octets, new Uint8Array(comm.size).fill(comm.size - 1));
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
      [new Uint16Array(3), {}, /is a Uint16Array: say what its elements are/],
      [new Uint16Array(3), { type: 'int12' }, /type 'int12' is unknown; known are int8, /],
      [new Uint16Array(3), { type: 'float8e4m3' }, /is a Uint16Array, whose elements have 2 bytes; a float8e4m3 has 1/],
      [new Float32Array(3), new Int32Array(3), /they must be alike/],
      [
        new Float32Array(3),
        { op: 'xor' },
        /operator "xor" is unknown; known are sum, prod, max, min, avg, \{ preMulSum: /,
      ],
      [new Int32Array(3), { op: { preMulSum: 0.5 } }, /the factor 0.5 of the pre-multiplied sum is no int32/],
      [new BigInt64Array(3), { op: { preMulSum: 2 } }, /the factor 2 .* is no int64/],
      [new Float32Array(new ArrayBuffer(8, { maxByteLength: 16 })), {}, /resizable buffer/],
    ];
    for (const [array, second, message] of wrong) {
      await assert.rejects(
        Promise.resolve(Reflect.apply(comm.allReduce.bind(comm), comm, [array, second])),
        usage(message),
      );
    }
    const gone = new Float32Array(3);
    structuredClone(gone.buffer, { transfer: [gone.buffer] });
    await assert.rejects(comm.allReduce(gone), usage(/its buffer was transferred/));
    const four = new Float32Array(4);
    const gather = comm.allGather(four, new Float32Array(13));
    await assert.rejects(
      gather,
      usage(/allGather: cannot go from a Float32Array of 4 into a Float32Array of 13; .* received 3 times/),
    );
    const scatter = comm.reduceScatter(new Float32Array(13), four);
    await assert.rejects(scatter, usage(/reduceScatter: cannot go from .* of 13 into .* of 4; .* sent 3 times/));
    const memory = new Float32Array(12);
    await assert.rejects(
      comm.allReduce(memory.subarray(0, 4), memory.subarray(3, 7)),
      usage(/overlap; in place, they must be the same/),
    );
    const own = memory.subarray(1, 5);
    await assert.rejects(
      comm.allGather(own, memory),
      usage(/overlap; in place, the smaller must be part \d of the larger/),
    );
    await assert.rejects(comm.reduceScatter(memory, own), usage(/overlap; in place, the smaller must be part/));
    await assert.rejects(comm.allToAll(four), usage(/allToAll: a Float32Array of 4 cannot be cut into 3 parts/));
    await assert.rejects(comm.allToAll(memory.subarray(0, 6), memory.subarray(3, 9)), usage(/overlap/));
    await assert.rejects(comm.scatter(null, four, { root: comm.rank }), usage(/scatter: the array to send is missing/));
    await assert.rejects(comm.broadcast(four, { root: 3 }), usage(/broadcast: rank 3 does not exist/));
    await assert.rejects(comm.reduce(four, { root: 0.5 }), usage(/reduce: rank 0.5 does not exist/));
    const missing = comm.reduce(four, null, { root: comm.rank });
    await assert.rejects(missing, usage(/reduce: the array to receive into is missing/));
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

  async splits() {
    await using comm = await init();
    const { rank, size } = comm;
    // Two at once: the second in the opposite order.
    const [parts, turned] = await Promise.all([comm.split(rank % 2), comm.split(0, -rank)]);
    assert.deepEqual([parts.rank, parts.size], [Math.floor(rank / 2), Math.ceil((size - (rank % 2)) / 2)]);
    assert.deepEqual([turned.rank, turned.size], [size - 1 - rank, size]);
    const members = await parts.allGather(Int32Array.of(rank), new Int32Array(parts.size));
    assert.deepEqual(
      members,
      Int32Array.from({ length: parts.size }, (_, member) => 2 * member + (rank % 2)),
    );
    const some = await comm.split(rank === 0 ? null : 7);
    assert.equal(some === null, rank === 0);
    assert.equal(some?.size, rank === 0 ? undefined : size - 1);
    await assert.rejects(comm.split(-1), usage(/split: the color is -1; it must be null or a whole number/));
    await assert.rejects(comm.split(0, 0.5), usage(/split: the key is 0.5/));

    // Operations of several communicators that every rank lists in another order.
    const sums = [comm, turned, parts].map((one) => ({ one, array: Float64Array.of(1) }));
    const order = [...sums.slice(rank % 3), ...sums.slice(0, rank % 3)];
    await Promise.all(group(() => order.map(({ one, array }) => one.allReduce(array))));
    assert.deepEqual(
      sums.map(({ array }) => array[0]),
      sums.map(({ one }) => one.size),
    );
    const [next, previous] = neighbours(comm);
    const got = new Int32Array(1);
    const both = group(() => [comm.send(Int32Array.of(rank), next), group(() => comm.recv(got, previous))]);
    await Promise.all(both);
    assert.equal(got[0], previous);
    await Promise.all([parts.close(), turned.close(), some?.close()]);
  },

  async 'aborts with its signal'() {
    const comm = await init();
    const { rank } = comm;
    const early = AbortSignal.abort(new Error('too early'));
    await assert.rejects(comm.allReduce(Float32Array.of(1), { signal: early }), /too early/);
    const unused = new AbortController();
    assert.deepEqual(await comm.allReduce(Float32Array.of(1), { signal: unused.signal }), Float32Array.of(comm.size));
    unused.abort(); // too late to change anything
    const breaker = new AbortController();
    // Rank 0 waits until nobody is in the operation before any more.
    const here = (peer: number): Promise<Float32Array> => comm.recv(new Float32Array(1), peer);
    if (rank === 0) for (let peer = 1; peer < comm.size; peer++) await here(peer);
    const never =
      rank === 0
        ? comm.recv(new Float32Array(1), 1, { signal: breaker.signal })
        : Promise.all([comm.send(new Float32Array(1), 0), comm.recv(new Float32Array(1), 0)]);
    if (rank === 0) breaker.abort(new Error('no patience'));
    await assert.rejects(never, rank === 0 ? /^Error: no patience$/ : /rank 0 .*no patience/);
    await comm.close();
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

  async 'keeps what operations use from the garbage collector'() {
    setFlagsFromString('--expose-gc');
    const collect: unknown = runInNewContext('gc');
    assert.ok(typeof collect === 'function');
    const collectAll = () => Array.from({ length: 10 }, () => [collect(), new Float64Array(1 << 16).fill(Number.NaN)]);
    await using comm = await init();
    const { rank, size } = comm;
    const reduced = Array.from({ length: 30 }, async () => {
      const sum = await comm.allReduce(new Float64Array(1 << 14).fill(1), new Float64Array(1 << 14));
      return sum.every((value) => value === size);
    });
    collectAll();
    assert.ok((await Promise.all(reduced)).every(Boolean));
    if (rank === 0) {
      const sent = Array.from({ length: size - 1 }, (_, i) => comm.send(new Float64Array(1 << 18).fill(i), i + 1));
      await Promise.resolve(); // the sends begin
      collectAll();
      await Promise.all(sent);
    } else {
      collectAll();
      const received = await comm.recv(new Float64Array(1 << 18), 0);
      assert.ok(received.every((value) => value === rank - 1));
    }
  },

  async 'works in worker threads, beside one another'() {
    await using comm = await init();
    const { rank, size } = comm;
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      import('ncclrun').then(async ({ init }) => {
        const comm = await init(workerData);
        let sum = 0;
        for (let i = 0; i < 100; ++i) [sum] = await comm.allReduce(Float64Array.of(comm.rank + i));
        await comm.close();
        parentPort.postMessage(sum);
      });`;
    const ids = await Promise.all([0, 1, 2].map(() => comm.broadcast(rank === 0 ? uniqueId() : new Uint8Array(128))));
    const workers = ids.map(
      (id) => new Worker(code, { eval: true, execArgv: [], workerData: { uniqueId: id, size, rank } }),
    );
    const sums = workers.map(
      (worker) => new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)),
    );
    const expected = 99 * size + (size * (size - 1)) / 2;
    assert.deepEqual(await Promise.all(sums), [expected, expected, expected]);
    await comm.barrier();
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
