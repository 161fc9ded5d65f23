/** Giving up a communicator that others do not join. */
import assert from 'node:assert/strict';
import { init, uniqueId } from 'ncclrun';
import type { Cases } from './common.ts';

export const joining: Cases = {
  async 'an abort signal ends the join'() {
    const early = AbortSignal.abort(new Error('too early'));
    await assert.rejects(init({ signal: early }), /^Error: too early$/);
    const unused = new AbortController();
    await using comm = await init({ signal: unused.signal });
    unused.abort(); // too late to change anything
    for (let turn = 0; turn < 10; turn++) {
      const timeout = new AbortController();
      const alone = init({ uniqueId: uniqueId(), size: 2, rank: 0, signal: timeout.signal });
      if (turn % 2 === 1) await new Promise((resolve) => setTimeout(resolve, turn)); // the agent knows of it
      timeout.abort(new Error('no patience'));
      await assert.rejects(alone, /^Error: no patience$/);
    }
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(comm.size));
  },

  async 'other ranks learn that a rank gave up joining'() {
    await using comm = await init();
    const { rank } = comm;
    const id = await comm.broadcast(rank === 0 ? uniqueId() : new Uint8Array(128));
    const timeout = new AbortController();
    if (rank === 0) setTimeout(() => timeout.abort(new Error('no patience')), 20);
    // Rank 2 does not join.
    if (rank < 2) {
      const never = init({ uniqueId: id, size: 3, rank, ...(rank === 0 ? { signal: timeout.signal } : {}) });
      await assert.rejects(never, rank === 0 ? /^Error: no patience$/ : /rank 0 .*no patience/);
    }
    await comm.barrier();
  },

  async 'ranks that join later learn that a rank gave up joining at once'() {
    await using comm = await init();
    for (let round = 0; round < 10; round++) {
      const id = await comm.broadcast(comm.rank === 0 ? uniqueId() : new Uint8Array(128));
      if (comm.rank === 0) {
        const timeout = new AbortController();
        const never = init({ uniqueId: id, size: 2, rank: 0, signal: timeout.signal });
        timeout.abort(new Error('no patience'));
        await assert.rejects(never, /^Error: no patience$/);
      }
      await comm.barrier();
      if (comm.rank === 1) await assert.rejects(init({ uniqueId: id, size: 2, rank: 1 }), /rank 0 .*no patience/);
    }
  },
};
