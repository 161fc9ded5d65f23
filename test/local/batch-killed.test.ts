/** Kills a scheduler before and after what it makes durable. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { buildDieAt, killedAt } from '../rig/killed-batch.ts';

/** All points take minutes. */
const step = process.env['NCCLRUN_TEST_LONG'] === '1' ? 1 : 19;

describeIf(noCompiler, 'a scheduler that is killed', () => {
  it('loses no task and runs none twice, wherever that happens', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'ncclrun-die-at-'));
    try {
      const library = buildDieAt(directory);
      const { points, status } = await killedAt(null, library);
      expect({ status, points: points > 60 }).toEqual({ status: 0, points: true });
      const wrong: unknown[] = [];
      for (let at = step; at <= points; at += step) {
        const killed = await killedAt(at, library);
        if (!isRight(killed.status, killed.ledger)) wrong.push(killed);
      }
      expect(wrong).toEqual([]);
    } finally {
      rmSync(directory, { recursive: true });
    }
  }, 3_600_000);
});

/** Tasks a and b have one line each, c two: its first failure and its success. Numbers of attempts may be left out, and none comes twice. */
function isRight(status: number | null, ledger: readonly string[]): boolean {
  if (status === null) return ledger.length === 0;
  const names = ledger.map((line) => line.split(' ')[0]);
  return status === 0 && names.join() === 'a,b,c,c' && new Set(ledger).size === ledger.length;
}
