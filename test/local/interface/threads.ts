/** Worker threads. */
import assert from 'node:assert/strict';
import { Worker } from 'node:worker_threads';
import { init, uniqueId } from 'ncclrun';
import type { Cases } from './common.ts';

/** Runs the script in a worker thread until it says that it is busy, then terminates it. */
async function terminated(script: string): Promise<void> {
  const code = `
    const { parentPort } = require('node:worker_threads');
    import('ncclrun')
      .then(async ({ init, uniqueId }) => {${script}})
      .catch(() => undefined) // another rank was quicker and aborted
      .then(() => parentPort.postMessage('busy'));`;
  const worker = new Worker(code, { eval: true, execArgv: [] });
  await new Promise((resolve, reject) => {
    worker.on('message', resolve);
    worker.on('error', reject);
  });
  await worker.terminate();
}

export const threads: Cases = {
  async 'communicators work in parallel worker threads'() {
    await using comm = await init();
    const { rank, size } = comm;
    const code = `
      const { parentPort, workerData } = require('node:worker_threads');
      import('ncclrun').then(async ({ init }) => {
        const comm = await init(workerData);
        let sum = 0;
        for (let i = 0; i < 100; ++i) [sum] = await comm.allReduce(Float64Array.of(comm.rank + i));
        await comm.close();
        parentPort.postMessage(sum);
      });`;
    const ids = await Promise.all([0, 1, 2].map(() => comm.broadcast(rank === 0 ? uniqueId() : new Uint8Array(128))));
    const workers = ids.map(
      (id) => new Worker(code, { eval: true, execArgv: [], workerData: { uniqueId: id, size, rank } }),
    );
    const sums = workers.map(
      (worker) => new Promise((resolve, reject) => worker.on('message', resolve).on('error', reject)),
    );
    const expected = 99 * size + (size * (size - 1)) / 2;
    assert.deepEqual(await Promise.all(sums), [expected, expected, expected]);
    await comm.barrier();
  },

  async 'a worker thread may end during operations'() {
    await terminated(`
      const comm = await init();
      for (let i = 0; i < 100; ++i) comm.allReduce(new Float32Array(1 << 20)).catch(() => undefined);
      if (comm.rank > 0) comm.recv(new Float32Array(1 << 20), 0).catch(() => undefined);`);
  },

  async 'a worker thread may end during close'() {
    await terminated(`
      const comm = await init();
      if (comm.rank > 0) comm.recv(new Float32Array(1 << 20), 0).catch(() => undefined);
      comm.close().catch(() => undefined);`);
  },

  async terminatedWhileJoining() {
    await terminated(`
      init({ uniqueId: uniqueId(), size: 2, rank: 0 }).catch(() => undefined); // nobody else has this id
      await new Promise((resolve) => setTimeout(resolve, 20));`);
  },
};
