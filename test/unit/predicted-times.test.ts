/** What the tuning model says of one host with NVLinks, beside what was measured on one. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as v from 'valibot';
import { describe, expect, it } from 'vitest';
import { ALGORITHMS, COLLECTIVES, PROTOCOLS } from '../../control/plan/layout.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { choicesFor, timeOf } from '../../control/planner/tuning/choices.ts';
import type { Choice } from '../../control/planner/tuning/choices.ts';
import { repository } from '../rig/cluster.ts';
import { eightGpus } from '../rig/eight-gpus.ts';

const row = v.tuple([
  v.picklist(COLLECTIVES),
  v.picklist(ALGORITHMS),
  v.picklist(PROTOCOLS),
  v.pipe(v.string(), v.transform(Number)),
  v.pipe(v.string(), v.transform(Number)),
]);

/** Two H100, operations of a graph, 2026-11-24: of each variant its best. */
const measured = readFileSync(join(repository, 'test/unit/fixtures/forms-two-h100.tsv'), 'utf8')
  .trim()
  .split('\n')
  .slice(1)
  .map((line) => v.parse(row, line.split('\t')));

const { situation } = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 2 }]);

function choice(collective: (typeof COLLECTIVES)[number], algorithm: string, protocol: string): Choice {
  const found = choicesFor(collective, situation).find(
    (one) => one.algorithm === algorithm && one.protocol === protocol,
  );
  if (found === undefined) throw new RangeError(`${collective} has no ${algorithm} ${protocol}`);
  return found;
}

describe('two GPUs with NVLinks', () => {
  it('95 % of the predictions are within 30 % of the measured time', () => {
    const off = measured.map(([collective, algorithm, protocol, bytes, microseconds]) =>
      Math.abs(timeOf(choice(collective, algorithm, protocol), bytes) / microseconds - 1),
    );
    const close = off.filter((one) => one <= 0.3).length;
    expect({ of: measured.length, enough: close >= 0.95 * measured.length }).toEqual({
      of: measured.length,
      enough: true,
    });
  });

  it('the variant predicted as fastest is within 10 % of the fastest in 95 % of cases, and always within 20 %', () => {
    const slower: string[] = [];
    let operations = 0;
    let within = 0;
    for (const collective of new Set(measured.map(([name]) => name))) {
      const rows = measured.filter(([name]) => name === collective);
      for (const bytes of new Set(rows.map(([, , , size]) => size))) {
        const timed = rows
          .filter(([, , , size]) => size === bytes)
          .map(([, algorithm, protocol, , microseconds]) => ({
            microseconds,
            predicted: timeOf(choice(collective, algorithm, protocol), bytes),
          }));
        const best = Math.min(...timed.map(({ microseconds }) => microseconds));
        const [chosen] = timed.toSorted((one, other) => one.predicted - other.predicted);
        const ratio = (chosen?.microseconds ?? Infinity) / best;
        operations += 1;
        if (ratio <= 1.1) within += 1;
        if (ratio > 1.2) slower.push(`${collective} ${bytes}: ${ratio.toFixed(2)}`);
      }
    }
    expect(slower).toEqual([]);
    expect(within).toBeGreaterThanOrEqual(0.95 * operations);
  });
});
