/** Operations that are not awaited, and what else runs meanwhile. */
import assert from 'node:assert/strict';
import { init } from 'ncclrun';
import type { Cases } from './common.ts';

export const order: Cases = {
  async 'operations keep their order without waiting'() {
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

  async 'operations do not block the event loop'() {
    await using comm = await init();
    let ticks = 0;
    const timer = setInterval(() => ++ticks, 1);
    if (comm.rank === 0) await new Promise((resolve) => setTimeout(resolve, 100));
    await comm.barrier();
    clearInterval(timer);
    assert.ok(comm.rank === 0 || ticks > 10, `${ticks} ticks`);
  },

  async 'the event loop runs between operations that end at once'() {
    await using comm = await init();
    let fired = false;
    setTimeout(() => (fired = true), 5);
    // Until every rank's timer has fired.
    while (((await comm.allReduce(Int32Array.of(fired ? 1 : 0)))[0] ?? 0) < comm.size);
  },

  async 'operations of any size end in order'() {
    await using comm = await init();
    const ended: number[] = [];
    const sizes = [1, 1 << 18, 2, 1 << 16, 3, 4, 1 << 18, 5];
    await Promise.all(
      sizes.map(async (length, number) => {
        const array = await comm.allReduce(new Float32Array(length).fill(number));
        assert.ok(array.every((value) => value === number * comm.size));
        ended.push(number);
      }),
    );
    assert.deepEqual(ended, [...sizes.keys()]);
  },
};
