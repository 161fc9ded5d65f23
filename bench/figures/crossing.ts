import { join } from 'node:path';
import * as v from 'valibot';
import { repository } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { interleaved, runCommand } from '../measure.ts';

const ITERATIONS = 2000;
const command = join(repository, 'bin/ncclrun');
const perfDocument = v.object({ rows: v.array(v.object({ inPlace: v.boolean(), timeUs: v.number() })) });

async function fromC(ranks: number, bytes: number): Promise<number | null> {
  const sizes = ['-b', String(bytes), '-e', String(bytes)];
  const repeats = ['--warmup', String(5 * ITERATIONS), '--iters', String(ITERATIONS)];
  const argv = [command, 'perf', 'all_reduce', '-n', String(ranks), ...sizes, ...repeats, '--json'];
  const { status, stdout } = await runCommand(argv);
  if (status !== 0) return null;
  return v.parse(perfDocument, JSON.parse(stdout)).rows.find((row) => !row.inPlace)?.timeUs ?? null;
}

async function fromTypeScript(ranks: number, bytes: number): Promise<number | null> {
  const program = join(import.meta.dirname, '../programs/crossing.ts');
  const { status, stdout } = await runCommand([
    command,
    '-n',
    String(ranks),
    program,
    String(bytes),
    String(ITERATIONS),
  ]);
  const time = Number(stdout.replace('[0] ', ''));
  return status === 0 && time > 0 ? time : null;
}

/** Small operations begun back to back: what a call and the settling of its promise cost more than the same call in C. */
export const crossing: Figure = {
  name: 'crossing',
  title: 'all_reduce from TypeScript less the same from C, per call, back to back',
  unavailable: () => null,
  async *run({ samples }) {
    for (const [ranks, bytes] of [
      [1, 16],
      [2, 16],
      [2, 4096],
    ] as const) {
      const taken = await interleaved(
        [
          { name: 'typescript', measure: () => fromTypeScript(ranks, bytes) },
          { name: 'c', measure: () => fromC(ranks, bytes) },
        ],
        samples,
      );
      const [typescript, c] = [taken.get('typescript') ?? null, taken.get('c') ?? null];
      const more = typescript === null || c === null ? null : typescript - c;
      const what = `n=${ranks} ${bytes} B`;
      yield { what, unit: 'µs', ours: more, peers: { typescript, c }, goal: { kind: 'at-most', bound: 2 } };
    }
  },
};
