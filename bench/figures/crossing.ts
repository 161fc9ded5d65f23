import { join } from 'node:path';
import * as v from 'valibot';
import { repository } from '../../test/rig/cluster.ts';
import { whileNear } from '../cores.ts';
import type { Figure } from '../figure.ts';
import { interleaved, runCommand } from '../measure.ts';

const ITERATIONS = 2000;
const command = join(repository, 'bin/ncclrun');
const perfDocument = v.object({ rows: v.array(v.object({ inPlace: v.boolean(), timeUs: v.number() })) });

interface Case {
  readonly ranks: number;
  readonly bytes: number;
  /** Each awaited before the next begins; else all begun back to back. */
  readonly awaited: boolean;
}

async function fromC({ ranks, bytes, awaited }: Case): Promise<number | null> {
  const sizes = ['-b', String(bytes), '-e', String(bytes)];
  const repeats = ['--warmup', String(5 * ITERATIONS), '--iters', String(ITERATIONS)];
  const waits = awaited ? ['--blocking'] : [];
  const argv = [
    command,
    'perf',
    'all_reduce',
    '--device',
    'host',
    '-n',
    String(ranks),
    ...sizes,
    ...repeats,
    ...waits,
    '--json',
  ];
  const { status, stdout } = await runCommand(argv);
  if (status !== 0) return null;
  return v.parse(perfDocument, JSON.parse(stdout)).rows.find((row) => !row.inPlace)?.timeUs ?? null;
}

async function fromTypeScript({ ranks, bytes, awaited }: Case): Promise<number | null> {
  const program = join(import.meta.dirname, '../programs/crossing.ts');
  const words = [String(bytes), String(ITERATIONS), awaited ? 'awaited' : 'together'];
  const { status, stdout } = await runCommand([command, '-n', String(ranks), program, ...words]);
  const time = Number(stdout.replace('[0] ', ''));
  return status === 0 && time > 0 ? time : null;
}

/** What a call and the settling of its promise cost more than the same call in C. */
export const crossing: Figure = {
  name: 'crossing',
  title: 'all_reduce from TypeScript less the same from C, per call',
  unavailable: () => null,
  async *run({ programs, samples }) {
    for (const one of [
      { ranks: 1, bytes: 16, awaited: true },
      { ranks: 2, bytes: 16, awaited: true },
      { ranks: 1, bytes: 16, awaited: false },
      { ranks: 2, bytes: 16, awaited: false },
      { ranks: 2, bytes: 4096, awaited: false },
    ]) {
      const taken = await interleaved(
        [
          { name: 'typescript', measure: () => whileNear(programs, () => fromTypeScript(one)) },
          { name: 'c', measure: () => whileNear(programs, () => fromC(one)) },
        ],
        samples,
      );
      const [typescript, c] = [taken.get('typescript') ?? null, taken.get('c') ?? null];
      const more = typescript === null || c === null ? null : typescript - c;
      const what = `n=${one.ranks} ${one.bytes} B ${one.awaited ? 'one by one' : 'back to back'}`;
      yield { what, unit: 'µs', ours: more, peers: { typescript, c }, goal: { kind: 'at-most', bound: 2 } };
    }
  },
};
