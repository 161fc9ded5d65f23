/** Aborting. */
import assert from 'node:assert/strict';
import { NcclError, init } from 'ncclrun';
import { usage } from './common.ts';
import type { Cases } from './common.ts';

export const abort: Cases = {
  async 'an abort signal aborts the communicator'() {
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

  async 'an abort reaches every rank'() {
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

  async 'an abort ends the operations in progress'() {
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
};
