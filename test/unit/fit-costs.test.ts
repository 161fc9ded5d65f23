/** The planner's constants from measured times: as good as those that it has. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { FORMAT_VERSION } from '../../control/planner/measured/key.ts';
import { planCluster } from '../../control/planner/cluster/plan-cluster.ts';
import { choicesFor, timeOf } from '../../control/planner/tuning/choices.ts';
import { INTRA_HOST_COSTS } from '../../control/planner/tuning/constants.ts';
import { patternOf } from '../../control/planner/tuning/inside.ts';
import { costsText, fitCosts, H200_LINKS, measuredTimes } from '../../scripts/fit-costs.ts';
import { repository } from '../rig/cluster.ts';
import { eightGpus } from '../rig/eight-gpus.ts';

const text = readFileSync(join(repository, 'test/unit/fixtures/forms-two-h100.tsv'), 'utf8');
const times = measuredTimes(text);
const costs = fitCosts(times, H200_LINKS);
const { situation } = planCluster([{ system: eightGpus(), hosts: 1, ranksPerHost: 2 }]);

describe('costs fitted to the times of two H100', () => {
  it('fitCosts finds as many constants as the planner has', () => {
    const known = Object.values(INTRA_HOST_COSTS).flatMap((ways) =>
      Object.values(ways).flatMap((one) => Object.values(one)),
    );
    expect(costs).toHaveLength(known.length);
  });

  it.each(costs.map((cost) => [`${cost.pattern} ${cost.algorithm} ${cost.protocol}`, cost] as const))(
    "the fit of %s deviates no more than the planner's own constants",
    (_, { pattern, algorithm, protocol, worst }) => {
      const off = times
        .filter((time) => time.protocol === protocol && time.algorithm === algorithm)
        .filter((time) => patternOf(time.collective) === pattern)
        .map(({ collective, bytes, microseconds }) => {
          const choice = choicesFor(collective, situation).find(
            (one) => one.algorithm === algorithm && one.protocol === protocol,
          );
          return choice === undefined ? Infinity : Math.abs(timeOf(choice, bytes) / microseconds - 1);
        });
      expect(worst).toBeLessThanOrEqual(Math.max(...off) + 0.005);
    },
  );

  it("costsText prints the constants in the planner's format", () => {
    const lines = costsText(costs).trimEnd().split('\n');
    expect(lines).toHaveLength(14);
    const quad = String.raw`\[[0-9.]+, 0\.[0-9]+, [0-9.]+, [0-9]+\]`;
    for (const line of lines)
      expect(line).toMatch(new RegExp(`^[a-zA-Z]+ [a-zA-Z]+: costs\\(${quad}, ${quad}, ${quad}\\),`, 'u'));
  });

  it('fitCosts takes the best channels of each variant of a table', () => {
    const variant = { protocol: 'simple', channels: 1, threads: 512 } as const;
    const slow = times.map(({ bytes }) => bytes).filter((bytes, place, all) => all.indexOf(bytes) === place);
    const own = times.filter(
      ({ collective, algorithm, protocol }) =>
        collective === 'broadcast' && algorithm === 'ring' && protocol === 'simple',
    );
    const table = {
      formatVersion: FORMAT_VERSION,
      key: {
        device: 'cuda',
        ranks: 2,
        topology: null,
        processor: null,
        cores: null,
        gpu: null,
        computeCapability: 90,
        driver: null,
      },
      measuredAt: '',
      version: '',
      collectives: [
        {
          collective: 'broadcast',
          variants: [
            { ...variant, algorithm: 'ring', times: slow.map((bytes) => [bytes, 1e6]) },
            {
              ...variant,
              algorithm: 'ring',
              channels: 64,
              times: own.map(({ bytes, microseconds }) => [bytes, microseconds]),
            },
          ],
        },
      ],
    };
    const [fitted] = fitCosts(measuredTimes(JSON.stringify(table)), H200_LINKS);
    expect(fitted).toEqual(fitCosts(own, H200_LINKS)[0]);
  });
});
