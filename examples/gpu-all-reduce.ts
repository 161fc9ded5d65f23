/**
 * Every rank has a million numbers in the memory of its GPU; after one all-reduce every GPU has their sums. Where there are fewer GPUs than
 * ranks, ordinary memory takes their place: the same calls, on the host device.
 *
 *     npx ncclrun -n 2 examples/gpu-all-reduce.ts
 */
import { gpuCount, init } from 'ncclrun';

const enough = gpuCount() >= Number(process.env['LOCAL_WORLD_SIZE']);
await using comm = await init({ device: enough ? 'cuda' : 'host' });

const count = 2 ** 20;
const values = comm.allocate('float32', count);
await values.copyFrom(new Float32Array(count).fill(comm.rank + 1));

// What is queued on a stream runs in order; nothing waits for it but the last line.
const stream = comm.stream();
await comm.barrier({ stream });
const begun = stream.record();
const sum = comm.allReduce(values, { stream });
const ended = stream.record();
await Promise.all([sum, stream.done]);

// A graph repeats what it has captured: here each launch multiplies every element by the number of ranks.
const graph = await stream.capture(() => {
  void comm.allReduce(values, { stream });
});
await graph.launch();

// Rank r gave r+1: their sum, times the number of ranks, in small whole numbers, exact as floats.
const expected = ((comm.size * (comm.size + 1)) / 2) * comm.size;
const wrong = (await values.copyTo(new Float32Array(count))).filter((value) => value !== expected).length;
if (comm.rank === 0) {
  const where = comm.device.type === 'cuda' ? 'GPUs' : 'ranks of the host device';
  console.log(`${comm.size} ${where} summed ${count} floats in ${ended.since(begun).toFixed(2)} ms`);
  console.log(wrong === 0 ? `every element is ${expected}, as it must be` : `${wrong} elements are wrong`);
}
if (wrong > 0) process.exitCode = 1;
