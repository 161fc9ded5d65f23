import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { median } from '../measure.ts';

const program = join(repository, 'build/test/recorder_cost');
/** What the flight recorder may add to an operation on the host device, in nanoseconds. */
const BOUND = 40;
const ratios = join(repository, 'build/test/recorder_ratio');
/** What it may add to operations of 4 KiB and more, in percent: the upper end of the 95 % interval of 31 pairs. */
const SHARE = 2;
const FROM_BYTES = 4096;

export const recorder: Figure = {
  name: 'recorder',
  title: 'flight recorder: operations on the host device with it and without, in turns',
  unavailable: () =>
    [program, ratios].every((one) => existsSync(one)) ? null : 'build/test/recorder_cost is not built',
  async *run({ samples }) {
    const taken: number[][] = [[], [], [], []];
    for (let sample = 0; sample < samples; sample++) {
      const { stdout } = await promisify(execFile)(program);
      for (const [place, word] of stdout.trim().split(' ').entries()) taken[place]?.push(Number(word));
    }
    const [ours, bare, more, alone] = taken.map((all) => median(all));
    yield { what: 'with', unit: 'ns', ours: ours ?? null, peers: {}, goal: null };
    yield { what: 'without', unit: 'ns', ours: bare ?? null, peers: {}, goal: null };
    const goal = { kind: 'at-most', bound: BOUND } as const;
    // Of barriers alone it reads the clock for their end, too.
    yield { what: 'difference', unit: 'ns', ours: more ?? null, peers: {}, goal };
    yield { what: 'other operations', unit: 'ns', ours: alone ?? null, peers: {}, goal };
    const { stdout } = await promisify(execFile)(ratios);
    for (const line of stdout.trim().split('\n')) {
      const [bytes = 0, mean = 0, low = 0, high = 0] = line.split(' ').map(Number);
      const [most, least] = [high, low].map((ratio) => ((ratio - 1) * 100).toFixed(2));
      const what = `all_reduce of 2 ranks, ${bytes} B: ${((mean - 1) * 100).toFixed(2)} % more (${least} to ${most})`;
      const bound = { kind: 'at-most', bound: SHARE } as const;
      yield { what, unit: '%', ours: Number(most), peers: {}, goal: bytes >= FROM_BYTES ? bound : null };
    }
  },
};
