/**
 * Starts itself once for each of four ranks, as multiprocessing and mp.spawn do. Each rank joins a communicator of two first and then one of
 * all, by ids that travel as files in the directory that is the argument. Prints "ok RANK".
 */
import { spawn } from 'node:child_process';
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { init, uniqueId } from 'ncclrun';

const SIZE = 4;
const [, , directory = '', given] = process.argv;
if (given === undefined) {
  const argv = [...process.execArgv, fileURLToPath(import.meta.url), directory];
  for (let rank = 0; rank < SIZE; rank += 1) spawn(process.execPath, [...argv, String(rank)], { stdio: 'inherit' });
} else {
  await run(Number(given));
}

async function run(rank: number): Promise<void> {
  const pair = await joinBy(`pair-${rank >> 1}`, rank % 2 === 0, { size: 2, rank: rank % 2 });
  const world = await joinBy('world', rank === SIZE - 1, { size: SIZE, rank });
  const [sum] = await world.allReduce(new Int32Array([rank]));
  await pair.close();
  await world.close();
  console.log(sum === 6 ? `ok ${rank}` : `rank ${rank}: ${sum}`);
}

async function joinBy(name: string, isMaker: boolean, place: { readonly size: number; readonly rank: number }) {
  const path = join(directory, name);
  if (isMaker) {
    writeFileSync(`${path}.part`, uniqueId());
    renameSync(`${path}.part`, path);
  }
  return init({ uniqueId: await idAt(path), ...place });
}

async function idAt(path: string): Promise<Uint8Array> {
  for (;;) {
    try {
      return readFileSync(path);
    } catch {
      await delay(1);
    }
  }
}
