/**
 * A rank gives up in the middle of the work; the others are told who and why, and finish without it.
 *
 *     npx ncclrun -n 4 examples/fault.ts
 */
import { NcclError, init, uniqueId } from 'ncclrun';
import type { Communicator } from 'ncclrun';

const steps = 10;
const faulty = 1;

/** Sums the numbers of all ranks, step by step; the rank that finds a number it cannot use breaks the communicator. */
async function work(comm: Communicator, from: number, value: number): Promise<number> {
  for (let step = from; step < steps; step++) {
    if (Number.isNaN(value) && step === steps / 2) comm.abort(`step ${step} gave NaN`);
    await comm.allReduce(Float64Array.of(value));
    reached = step + 1;
  }
  return reached;
}

let reached = 0;
const everybody = await init();
// While all is well, rank 0 makes the id of a communicator for the case that it does not stay so.
const spare = await everybody.broadcast(everybody.rank === 0 ? uniqueId() : new Uint8Array(128));
const { rank, size } = everybody;
try {
  await work(everybody, 0, rank === faulty ? Number.NaN : rank);
} catch (error) {
  if (rank === faulty) {
    console.log(`rank ${rank} gave up after ${reached} steps`);
  } else {
    if (!(error instanceof NcclError) || error.code !== 'remoteError') throw error;
    await using rest = await init({ uniqueId: spare, size: size - 1, rank: rank < faulty ? rank : rank - 1 });
    // The fault may have reached some before the end of a step that others had done.
    const [from = 0] = await rest.allReduce(Int32Array.of(reached), { op: 'min' });
    const done = await work(rest, from, rank);
    if (rank === 0) console.log(`${error.message}\n${rest.size} ranks went on from step ${from} and did all ${done}`);
  }
} finally {
  await everybody.close();
}
