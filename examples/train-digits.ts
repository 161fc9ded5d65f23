/**
 * Ranks train a small network together to read handwritten digits (digits.md): each rank works on its share of every batch, the gradients
 * are summed by one all-reduce, and every rank takes the same step. The loss does not depend on the number of ranks.
 *
 *     npx ncclrun -n 4 examples/train-digits.ts
 */
import { readFileSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { init } from 'ncclrun';
import type { Communicator } from 'ncclrun';

const pixels = 64;
const hidden = 24;
const classes = 10;
const training = 1500; // the other 297 digits are for the test
const batch = 120;
const steps = 400;
const rate = 0.5;
const momentum = 0.9;

interface Digit {
  readonly ink: Float64Array;
  readonly label: number;
}

function readDigits(): Digit[] {
  const file = new URL('digits.csv.gz', import.meta.url);
  const lines = gunzipSync(readFileSync(file)).toString().trim().split('\n');
  return lines.map((line) => {
    const numbers = line.split(',').map(Number);
    return { ink: Float64Array.from(numbers.slice(0, pixels), (value) => value / 16), label: numbers[pixels] ?? 0 };
  });
}

/** All weights in one array: a row of (pixels + 1) per hidden unit, then a row of (hidden + 1) per class; the last of a row is the bias. */
const weightCount = hidden * (pixels + 1) + classes * (hidden + 1);

/** Small numbers that look random; rank 0's reach everybody by a broadcast. */
async function firstWeights(comm: Communicator): Promise<Float64Array> {
  let state = 1;
  const weights = Float64Array.from({ length: weightCount }, () => {
    state = (state * 48_271) % 2_147_483_647;
    return (state / 2_147_483_647 - 0.5) / 4;
  });
  return comm.broadcast(weights);
}

/** values[row] = weights of the row · inputs + bias */
function layer(weights: Float64Array, offset: number, inputs: Float64Array, values: Float64Array): void {
  for (let row = 0; row < values.length; row++) {
    const begin = offset + row * (inputs.length + 1);
    let sum = weights[begin + inputs.length] ?? 0;
    for (let i = 0; i < inputs.length; i++) sum += (weights[begin + i] ?? 0) * (inputs[i] ?? 0);
    values[row] = sum;
  }
}

const secondLayer = hidden * (pixels + 1);
const units = new Float64Array(hidden);
const likely = new Float64Array(classes);

/** Fills `units` and `likely`, the probabilities of the classes. */
function look(weights: Float64Array, { ink }: Digit): void {
  layer(weights, 0, ink, units);
  for (const [unit, value] of units.entries()) units[unit] = Math.tanh(value);
  layer(weights, secondLayer, units, likely);
  const max = Math.max(...likely);
  let sum = 0;
  for (const [label, value] of likely.entries()) sum += likely[label] = Math.exp(value - max);
  for (const [label, value] of likely.entries()) likely[label] = value / sum;
}

function addRow(gradient: Float64Array, begin: number, inputs: Float64Array, error: number): void {
  for (let i = 0; i < inputs.length; i++) gradient[begin + i] = (gradient[begin + i] ?? 0) + error * (inputs[i] ?? 0);
  gradient[begin + inputs.length] = (gradient[begin + inputs.length] ?? 0) + error;
}

/** Adds the digit's gradient to `gradient`; returns its loss. */
function learn(weights: Float64Array, digit: Digit, gradient: Float64Array): number {
  look(weights, digit);
  const loss = -Math.log(likely[digit.label] ?? 1);
  const back = new Float64Array(hidden);
  for (let label = 0; label < classes; label++) {
    const error = (likely[label] ?? 0) - (label === digit.label ? 1 : 0);
    const begin = secondLayer + label * (hidden + 1);
    for (let unit = 0; unit < hidden; unit++) back[unit] = (back[unit] ?? 0) + error * (weights[begin + unit] ?? 0);
    addRow(gradient, begin, units, error);
  }
  for (let unit = 0; unit < hidden; unit++) {
    const slope = 1 - (units[unit] ?? 0) ** 2;
    addRow(gradient, unit * (pixels + 1), digit.ink, (back[unit] ?? 0) * slope);
  }
  return loss;
}

await using comm = await init();
const digits = readDigits();
const weights = await firstWeights(comm);
const velocity = new Float64Array(weightCount);
const sums = new Float64Array(weightCount + 1); // the gradient, and the loss
let loss = 0;

for (let step = 1; step <= steps; step++) {
  sums.fill(0);
  for (let i = comm.rank; i < batch; i += comm.size) {
    const digit = digits[(step * batch + i) % training];
    if (digit !== undefined) sums[weightCount] = (sums[weightCount] ?? 0) + learn(weights, digit, sums);
  }
  await comm.allReduce(sums);
  loss = (sums[weightCount] ?? 0) / batch;
  for (let i = 0; i < weightCount; i++) {
    velocity[i] = momentum * (velocity[i] ?? 0) - (rate / batch) * (sums[i] ?? 0) * (1 - momentum);
    weights[i] = (weights[i] ?? 0) + (velocity[i] ?? 0);
  }
  if (comm.rank === 0 && step % 100 === 0) console.log(`step ${step}: loss ${loss}`);
}

// Everybody reads a share of the digits that nobody has seen yet.
const read = Int32Array.of(0, 0);
for (let i = training + comm.rank; i < digits.length; i += comm.size) {
  const digit = digits[i];
  if (digit === undefined) continue;
  look(weights, digit);
  if (likely.indexOf(Math.max(...likely)) === digit.label) read[0] = (read[0] ?? 0) + 1;
  read[1] = (read[1] ?? 0) + 1;
}
const [right = 0, all = 0] = await comm.allReduce(read);
if (comm.rank === 0) console.log(`${right} of ${all} new digits read right: ${((100 * right) / all).toFixed(1)} %`);
if (right < 0.9 * all) process.exitCode = 1;
