/**
 * A word goes once around the ring of ranks, and every rank adds its number to it.
 *
 *     npx ncclrun -n 4 examples/ring.ts
 */
import { init } from 'ncclrun';

await using comm = await init();
const next = (comm.rank + 1) % comm.size;
const previous = (comm.rank + comm.size - 1) % comm.size;

// Sends and receives that begin together progress together: all ranks may send and receive at the same time.
const mine = Int32Array.of(comm.rank);
const neighbours = new Int32Array(1);
await Promise.all([comm.send(mine, next), comm.recv(neighbours, previous)]);
if (neighbours[0] !== previous) throw new Error(`rank ${comm.rank} got ${neighbours[0]} from rank ${previous}`);

// Now one after another: rank 0 begins and gets the word back at the end, each other rank waits for the one before it.
const word = new Int32Array(comm.size).fill(-1);
if (comm.rank === 0) {
  word[0] = 0;
  const back = new Int32Array(comm.size);
  await Promise.all([comm.send(word, next), comm.recv(back, previous)]);
  console.log(`the word came back from rank ${previous} having seen ranks ${[...back].join(', ')}`);
  if (back.some((rank, index) => rank !== index)) process.exitCode = 1;
} else {
  await comm.recv(word, previous);
  word[comm.rank] = comm.rank;
  await comm.send(word, next);
}
