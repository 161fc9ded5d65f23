/** The garbage collector. */
import assert from 'node:assert/strict';
import { readdirSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { init } from 'ncclrun';
import type { Communicator } from 'ncclrun';
import { collector } from './common.ts';
import type { Cases } from './common.ts';

const descriptors = () => readdirSync('/proc/self/fd').length;

export const garbage: Cases = {
  async 'memory of pending operations is not collected'() {
    const collect = collector();
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

  async 'unreferenced communicators are collected'() {
    const collect = collector();
    await using comm = await init();
    const { rank, size } = comm;
    const dropped = async (): Promise<WeakRef<Communicator>> => {
      const part = await comm.split(0);
      await part.allReduce(Float32Array.of(1));
      return new WeakRef(part);
    };
    const gone = async (reference: WeakRef<Communicator>) => {
      while (reference.deref() !== undefined) {
        await setImmediate();
        collect();
      }
    };
    await gone(await dropped());
    const before = descriptors();
    for (let turn = 0; turn < 10; turn++) await gone(await dropped());
    await comm.barrier();
    while (descriptors() > before) await setImmediate(); // they are closed

    // One in use: what is under way ends.
    const begun = await comm.split(0).then(async (part) => {
      if (rank === 0) await comm.barrier(); // the others' is under way
      return { sum: part.allReduce(new Float64Array(1 << 16).fill(1)) };
    });
    for (let turn = 0; turn < 10; turn++) {
      await setImmediate();
      collect();
    }
    if (rank !== 0) await comm.barrier();
    assert.ok((await begun.sum).every((value) => value === size));
  },
};
