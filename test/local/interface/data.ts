/** What operations do with data. */
import assert from 'node:assert/strict';
import { init } from 'ncclrun';
import { neighbours } from './common.ts';
import type { Cases } from './common.ts';

export const data: Cases = {
  async 'reductions give exact results'() {
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

  async 'gather, scatter, broadcast and reduce are exact'() {
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

  async 'averages and pre-multiplied sums are exact'() {
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

  async 'types without a typed array work'() {
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

  async 'ranks exchange messages'() {
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
};
