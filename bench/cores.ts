/**
 * A virtual machine's cores move about among those of its host. Whether two of them share a last-level cache at the moment changes every
 * exchange between two ranks by a factor of two to four, whoever's it is: contestants are compared while they do.
 */
import { availableParallelism } from 'node:os';
import { setTimeout as sleep } from 'node:timers/promises';
import { runCommand } from './measure.ts';
import type { Programs } from './programs.ts';

/** Nanoseconds there and back between cores 0 and 1: 90 to 150 within a last-level cache, 360 to 460 beyond (AMD EPYC, virtual). */
const NEAR_NANOSECONDS = 200;
const TRIES = 12;
const REST_MS = 100;

/** Takes a sample before and after which the cores were near to each other; after some tries in vain whatever comes. */
export async function whileNear<Sample>(programs: Programs, measure: () => Promise<Sample>): Promise<Sample> {
  for (let attempt = 1; attempt < TRIES; attempt++) {
    if (await areNear(programs)) {
      const sample = await measure();
      if (await areNear(programs)) return sample;
    }
    await sleep(REST_MS);
  }
  process.stderr.write('  a sample with its cores apart\n');
  return measure();
}

async function areNear(programs: Programs): Promise<boolean> {
  if (availableParallelism() < 2) return true;
  const finished = await runCommand([await programs.plain('core_distance'), '0', '1']);
  return Number(finished.stdout) < NEAR_NANOSECONDS;
}
