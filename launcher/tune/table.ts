/** From what was measured to the table that planners read. */
import * as v from 'valibot';
import { FORMAT_VERSION } from '../../control/planner/measured/key.ts';
import { parseTable } from '../../control/planner/measured/table.ts';
import type { MeasuredVariant, Table } from '../../control/planner/measured/table.ts';
import { collectiveOfWord } from '../cli/collectives.ts';
import type { TuneRow } from './lines.ts';

interface Measured {
  readonly rows: readonly TuneRow[];
  /** Of the host that planned, as JSON. */
  readonly key: string;
  readonly measuredAt: Date;
  readonly version: string;
}

/** Throws a TableError for a key that is none. */
export function tableOfMeasured({ rows, key, measuredAt, version }: Measured): Table {
  const collectives = [...Map.groupBy(rows, ({ collective }) => collective)].map(([collective, own]) => ({
    collective: collectiveOfWord(collective),
    variants: variantsOf(own),
  }));
  const table = {
    formatVersion: FORMAT_VERSION,
    key: v.parse(v.unknown(), JSON.parse(key)),
    measuredAt: measuredAt.toISOString(),
    version,
    collectives,
  };
  return parseTable(JSON.stringify(table));
}

function variantsOf(rows: readonly TuneRow[]): MeasuredVariant[] {
  return [...Map.groupBy(rows, nameOf).values()].flatMap((own) => {
    const [first] = own;
    if (first === undefined) return [];
    const { algorithm, protocol, channels, threads } = first;
    // A variant that stands for one that the GPUs cannot carry out is measured twice.
    const times = new Map(own.map(({ bytes, timeUs }) => [bytes, Math.max(timeUs, SHORTEST)] as const));
    return [{ algorithm, protocol, channels, threads, times: [...times].toSorted(([one], [other]) => one - other) }];
  });
}

function nameOf({ algorithm, protocol, channels, threads }: TuneRow): string {
  return `${algorithm} ${protocol} ${channels} ${threads}`;
}

/** Microseconds; what a clock cannot tell is not nothing. */
const SHORTEST = 0.001;
