/** What a communicator says of itself, and what it refuses. */
import assert from 'node:assert/strict';
import { init } from 'ncclrun';
import { usage } from './common.ts';
import type { Cases } from './common.ts';

export const refusals: Cases = {
  async 'the communicator describes itself'() {
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

  async 'invalid calls are rejected'() {
    await using comm = await init();
    await assert.rejects(
      comm.allReduce(new Float32Array(3), new Float32Array(4)),
      usage(/a Float32Array of 3 into a Float32Array of 4/),
    );
    const transferred = new Float32Array(3);
    structuredClone(transferred, { transfer: [transferred.buffer] });
    const wrong: readonly (readonly [unknown, unknown, RegExp])[] = [
      [new Int16Array(3), {}, /is of an unknown kind \(Int16Array\); write Float32Array/],
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
      [new Float32Array(new SharedArrayBuffer(8, { maxByteLength: 16 })), {}, /resizable buffer/],
      [transferred, {}, /has no memory: its buffer was transferred or closed/],
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
};
