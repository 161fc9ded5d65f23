/**
 * Every rank has a million numbers; after one all-reduce every rank has their sums, element by element.
 *
 *     npx ncclrun -n 4 examples/all-reduce.ts
 */
import { init } from 'ncclrun';

await using comm = await init();

const count = 2 ** 20;
const values = new Float32Array(count).fill(comm.rank + 1);
await comm.barrier(); // so that the time is that of the sum, not of the slowest start
const begin = performance.now();
await comm.allReduce(values, { op: 'sum' });
const milliseconds = performance.now() - begin;

// Rank r gave r+1, so every element must be 1 + 2 + … + size: small whole numbers, exact as floats.
const expected = (comm.size * (comm.size + 1)) / 2;
const wrong = values.filter((value) => value !== expected).length;

// Everybody tells everybody how many of its elements are wrong.
const [wrongAnywhere] = await comm.allReduce(new Float32Array([wrong]));
if (comm.rank === 0) {
  const where = comm.hosts.length === 1 ? `on ${comm.hosts[0]?.name}` : `on ${comm.hosts.length} hosts`;
  console.log(`${comm.size} ranks ${where} summed ${count} floats in ${milliseconds.toFixed(2)} ms`);
  console.log(
    wrongAnywhere === 0 ? `every element is ${expected}, as it must be` : `${wrongAnywhere} elements are wrong`,
  );
}
if (wrong > 0) process.exitCode = 1;
