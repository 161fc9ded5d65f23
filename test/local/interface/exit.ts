/** Ends of the process. */
import assert from 'node:assert/strict';
import { init } from 'ncclrun';
import type { Cases } from './common.ts';

export const exit: Cases = {
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

  async 'may exit in the middle of operations'() {
    const comm = await init();
    const { rank, size } = comm;
    await using all = await comm.split(0);
    const never = Array.from({ length: 3 }, () => comm.allReduce(new Float32Array(1 << 20)).catch(() => undefined));
    if (rank === size - 1) never.push(comm.recv(new Float32Array(1 << 16), 0).catch(() => undefined));
    await all.barrier();
    process.exit(0);
  },
};
