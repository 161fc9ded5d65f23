/**
 * One rank: microseconds per all_reduce of BYTES bytes, ITERATIONS of them begun back to back and then awaited together, or each `awaited`
 * before the next. Rank 0 prints the median of 11 rounds.
 */
import { init } from 'ncclrun';

const [bytes = 16, iterations = 2000] = process.argv.slice(2, 4).map(Number);
const awaited = process.argv[4] === 'awaited';
await using comm = await init();
const send = new Float32Array(bytes / 4);
const receive = new Float32Array(bytes / 4);

async function oneByOne(): Promise<void> {
  for (let i = 0; i < iterations; i++) await comm.allReduce(send, receive);
}

async function backToBack(): Promise<void> {
  const all: Promise<unknown>[] = [];
  for (let i = 0; i < iterations; i++) all.push(comm.allReduce(send, receive));
  await Promise.all(all);
}

async function round(): Promise<number> {
  await comm.barrier();
  const begun = performance.now();
  await (awaited ? oneByOne() : backToBack());
  return ((performance.now() - begun) * 1000) / iterations;
}

for (let warmup = 0; warmup < 5; warmup++) await round();
const times: number[] = [];
for (let i = 0; i < 11; i++) times.push(await round());
if (comm.rank === 0) console.log(times.toSorted((a, b) => a - b)[5]);
