/** Ends of the process. */
import assert from 'node:assert/strict';
import { init } from 'ncclrun';
import type { Cases } from './common.ts';

export const exit: Cases = {
  async 'a program may end without closing'() {
    const comm = await init();
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(comm.size));
  },

  async 'a program may exit without closing'() {
    const comm = await init();
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(comm.size));
    await comm.barrier();
    process.exit(0);
  },

  async 'a program may exit during operations'() {
    const comm = await init();
    const { rank, size } = comm;
    await using all = await comm.split(0);
    const never = Array.from({ length: 3 }, () => comm.allReduce(new Float32Array(1 << 20)).catch(() => undefined));
    if (rank === size - 1) never.push(comm.recv(new Float32Array(1 << 16), 0).catch(() => undefined));
    await all.barrier();
    process.exit(0);
  },
};
