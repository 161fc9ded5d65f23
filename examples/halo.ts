/**
 * Heat spreads along a rod that is cut into one piece per rank. In every step a rank needs one cell of each neighbour's piece, its halo.
 *
 *     npx ncclrun -n 4 examples/halo.ts
 */
import { init } from 'ncclrun';

const cells = 100; // of each rank
const steps = 500;

/** One step of the cells 1 … length - 2; the two at the ends are not ours. */
function spread(rod: Float64Array<ArrayBuffer>): Float64Array<ArrayBuffer> {
  return rod.map((here, i) => {
    const left = rod[i - 1];
    const right = rod[i + 1];
    return left === undefined || right === undefined ? here : here + 0.25 * (left - 2 * here + right);
  });
}

await using comm = await init();
const { rank, size } = comm;
const warm = Math.floor((size * cells) / 3);

// The piece with a halo cell at either end; beyond the ends of the rod it is cold. One cell of the rod is hot.
let piece = new Float64Array(cells + 2);
if (Math.floor(warm / cells) === rank) piece[1 + (warm % cells)] = 1000;
for (let step = 0; step < steps; step++) {
  const transfers: Promise<unknown>[] = [];
  if (rank > 0) transfers.push(comm.send(piece.subarray(1, 2), rank - 1), comm.recv(piece.subarray(0, 1), rank - 1));
  if (rank < size - 1)
    transfers.push(comm.send(piece.subarray(-2, -1), rank + 1), comm.recv(piece.subarray(-1), rank + 1));
  await Promise.all(transfers); // all four make progress together
  piece = spread(piece);
}

// Rank 0 puts the rod together and compares it with one that was never cut: the same arithmetic, so the same bits.
const together = await comm.gather(piece.subarray(1, -1), rank === 0 ? new Float64Array(size * cells) : null);
if (together !== null) {
  let whole = new Float64Array(size * cells + 2);
  whole[1 + warm] = 1000;
  for (let step = 0; step < steps; step++) whole = spread(whole);
  const differ = together.filter((value, i) => value !== whole[i + 1]).length;
  const hottest = Math.max(...together).toFixed(3);
  console.log(`${steps} steps on ${size} pieces of ${cells} cells: the hottest cell has ${hottest} degrees`);
  console.log(
    differ === 0 ? 'every cell is as in a rod of one piece' : `${differ} cells differ from a rod of one piece`,
  );
  if (differ > 0) process.exitCode = 1;
}
