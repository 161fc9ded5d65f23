/** Several communicators, and groups of operations. */
import assert from 'node:assert/strict';
import { group, init, uniqueId } from 'ncclrun';
import { neighbours, usage } from './common.ts';
import type { Cases } from './common.ts';

export const communicators: Cases = {
  async 'some ranks create communicators of their own'() {
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

  async 'a split creates the right parts'() {
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
};
