/** Times of variants between hosts beside those that the model predicts. */
import { ALGORITHMS, COLLECTIVES, DEVICES } from '../control/plan/layout.ts';
import type { AlgorithmName, CollectiveName, DeviceName } from '../control/plan/types.ts';
import { termsOf } from '../control/planner/device/between-terms.ts';
import { gpuBudget } from '../control/planner/device/gpus.ts';
import { NO_PREFERENCES } from '../control/planner/input/preferences.ts';
import { countByLayout } from '../control/planner/measured/key.ts';
import type { Table } from '../control/planner/measured/table.ts';
import { predictBetween } from '../control/planner/tuning/between.ts';
import { timeOf } from '../control/planner/tuning/choices.ts';

export interface TimeBetweenHosts {
  readonly device: DeviceName;
  /** As tables have it: `2x4` are two hosts of four ranks. */
  readonly layout: string;
  readonly cores: number;
  readonly isOneMachine: boolean;
  /** Mbit/s of all NICs of a host; 0: unknown. */
  readonly speedMbps: number;
  readonly collective: CollectiveName;
  readonly algorithm: AlgorithmName;
  readonly bytes: number;
  readonly microseconds: number;
}

export interface ComparedTime extends TimeBetweenHosts {
  /** Predicted ÷ measured. */
  readonly ratio: number;
}

/** Of one machine with two cores; GPUs have as many as they need. */
export function timesOfTsv(text: string): TimeBetweenHosts[] {
  const lines = text.trim().split('\n').slice(1);
  return lines.map((line) => {
    const [device, hosts, ranks, collective, algorithm, bytes, microseconds] = line.split('\t');
    return {
      device: known(DEVICES, device),
      layout: `${hosts}x${Number(ranks) / Number(hosts)}`,
      cores: 2,
      isOneMachine: true,
      speedMbps: 0,
      collective: known(COLLECTIVES, collective),
      algorithm: known(ALGORITHMS, algorithm),
      bytes: Number(bytes),
      microseconds: Number(microseconds),
    };
  });
}

/** Protocol Simple, each algorithm with the number of channels that was the fastest. */
export function timesOfTable({ key, collectives }: Table): TimeBetweenHosts[] {
  const { between } = key;
  if (between === undefined) throw new Error('the table is of one host');
  const { layout, isOneMachine, nics, speedMbps } = between;
  const common = { device: key.device, layout, cores: key.cores ?? 1, isOneMachine, speedMbps: nics * speedMbps };
  return collectives.flatMap(({ collective, variants }) => {
    const simple = variants.filter(({ protocol }) => protocol === 'simple');
    return [...Map.groupBy(simple, ({ algorithm }) => algorithm)].flatMap(([algorithm, own]) => {
      const fastest = new Map<number, number>();
      for (const [bytes, time] of own.flatMap(({ times }) => times))
        fastest.set(bytes, Math.min(time, fastest.get(bytes) ?? Infinity));
      return [...fastest].map(([bytes, microseconds]) => ({ ...common, collective, algorithm, bytes, microseconds }));
    });
  });
}

/** Without times that the model does not predict. */
export function compared(times: readonly TimeBetweenHosts[]): ComparedTime[] {
  return times.flatMap((time) => {
    const { device, layout, cores, isOneMachine, speedMbps, collective, algorithm, bytes, microseconds } = time;
    const extent = countByLayout(layout);
    const { budget } = gpuBudget({ extent, limit: Infinity, isLater: false }, NO_PREFERENCES);
    const nicRate = isOneMachine || speedMbps === 0 ? null : speedMbps / 8;
    const terms = termsOf(
      device,
      { nicRate, linkRate: nicRate },
      {
        network: null,
        corrections: {},
        ...(device === 'cuda' ? budget : { channels: 1, pairChannels: 1 }),
        load: device === 'cuda' ? 1 : (isOneMachine ? extent.ranks : extent.maxRanks) / cores,
      },
    );
    const prediction = predictBetween(collective, algorithm, extent, terms);
    return prediction === null ? [] : [{ ...time, ratio: timeOf({ prediction }, bytes) / microseconds }];
  });
}

/** A line for each algorithm of a collective, and of all the least, the median and the greatest. */
export function ratiosText(times: readonly ComparedTime[]): string {
  const groups = Map.groupBy(
    times,
    ({ device, layout, collective, algorithm }) => `${device} ${layout} ${collective} ${algorithm}`,
  );
  const lines = [...groups].map(
    ([name, own]) => `${name.padEnd(40)} ${own.map(({ bytes, ratio }) => `${bytes}:${ratio.toFixed(2)}`).join(' ')}\n`,
  );
  const sorted = times.map(({ ratio }) => ratio).toSorted((one, other) => one - other);
  const at = (share: number): string =>
    (sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0).toFixed(2);
  const all = `${sorted.length} times: least ${at(0)}, a tenth below ${at(0.1)}, median ${at(0.5)}, a tenth above ${at(0.9)}, greatest ${at(1)}\n`;
  return `predicted time ÷ measured time, by bytes\n${lines.join('')}${all}`;
}

function known<Name extends string>(names: readonly Name[], word: string | undefined): Name {
  const found = names.find((name) => name === word);
  if (found === undefined) throw new Error(`${word} is none of ${names.join(', ')}`);
  return found;
}
