/** Memory that the engine allocates. */
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { setImmediate } from 'node:timers/promises';
import { allocate, init } from 'ncclrun';
import { collector, neighbours, usage } from './common.ts';
import type { Cases } from './common.ts';

/** Mebibytes of address space that this process has. */
function addressSpace(): number {
  const [, kibibytes] = /^VmSize:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8')) ?? [];
  return Number(kibibytes) / 1024;
}

const LARGE = 1 << 30;
const LARGE_MEBIBYTES = LARGE / (1 << 20);

export const memory: Cases = {
  async 'memory of the engine works like any other'() {
    await using comm = await init();
    const { size } = comm;
    using held = allocate(8192);
    assert.equal(held.byteLength, 8192);
    const whole = new Float32Array(held.buffer);
    assert.ok(whole.every((value) => value === 0));
    whole.fill(1);
    assert.deepEqual(await comm.allReduce(whole), new Float32Array(2048).fill(size));
    const [first, second] = [new BigInt64Array(held.buffer, 0, 2), new BigInt64Array(held.buffer, 4096, 2)];
    first.fill(7n);
    const [next, previous] = neighbours(comm);
    await Promise.all([comm.send(first, next), comm.recv(second, previous)]);
    assert.deepEqual(second, BigInt64Array.of(7n, 7n));
    assert.equal(allocate(0).buffer.byteLength, 0);
  },

  async 'closed memory is rejected'() {
    await using comm = await init();
    const held = allocate(1024);
    const array = new Float32Array(held.buffer);
    held.close();
    held.close();
    assert.throws(() => held.buffer, usage(/memory of 1024 bytes was closed before/));
    assert.equal(array.length, 0);
    await assert.rejects(comm.allReduce(array), usage(/has no memory: its buffer was transferred or closed/));
    let left: Float32Array;
    {
      using inside = allocate(1024);
      left = new Float32Array(inside.buffer);
    }
    await assert.rejects(comm.broadcast(left), usage(/has no memory/));
    for (const size of [-1, 0.5, Number.NaN, 2 ** 60])
      assert.throws(() => allocate(size), usage(/is no number of bytes/));
    assert.throws(() => allocate(2 ** 52), {
      name: 'NcclError',
      code: 'systemError',
      message: /no 4503599627370496 bytes/,
    });
  },

  async 'closed memory lives while operations use it'() {
    await using comm = await init();
    const { rank, size } = comm;
    await using part = await comm.split(0);
    const before = addressSpace();
    const held = allocate(LARGE);
    const array = new Float32Array(held.buffer).subarray(0, 1 << 20).fill(1);
    if (rank === 0) await comm.barrier(); // it is under way at the others
    const ended = part.allReduce(array);
    held.close();
    assert.equal(array.length, 0);
    await setImmediate();
    if (rank !== 0) await comm.barrier();
    await ended;
    while (addressSpace() - before > LARGE_MEBIBYTES / 2) await setImmediate();
    assert.deepEqual(await comm.allReduce(Float32Array.of(1)), Float32Array.of(size));
  },

  async 'unreferenced memory is freed'() {
    const collect = collector();
    const before = addressSpace();
    for (let turn = 0; turn < 8; turn++) {
      new Uint8Array(allocate(LARGE).buffer)[turn] = 1;
      await setImmediate();
    }
    while (addressSpace() - before > LARGE_MEBIBYTES / 2) {
      collect();
      await setImmediate();
    }
  },
};
