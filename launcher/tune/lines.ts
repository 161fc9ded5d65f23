/** What the ranks of `ncclrun tune` measure: one JSON object per line on rank 0's stdout, a head first, then a line per variant, the load last. */
import { objectOfLine } from '../report/measured-lines.ts';
import * as v from 'valibot';
import { ALGORITHMS, PROTOCOLS } from '../../control/plan/layout.ts';
import type { AlgorithmName, ProtocolName } from '../../control/plan/types.ts';
import { collectives } from '../cli/command-table.ts';
import type { CollectiveWord } from '../../control/collectives.ts';

const head = v.object({ device: v.picklist(['host', 'cuda']), ranks: v.number(), hosts: v.number() });
const line = v.object({
  collective: v.picklist(collectives),
  bytes: v.number(),
  algorithm: v.number(),
  protocol: v.number(),
  channels: v.number(),
  threads: v.number(),
  timeUs: v.number(),
  spread: v.number(),
  planned: v.boolean(),
});
const load = v.object({
  load: v.array(v.object({ host: v.string(), processors: v.pipe(v.number(), v.minValue(1)), others: v.number() })),
});

export type TuneHead = Readonly<v.InferOutput<typeof head>>;

/** A variant at one size, of the larger of a rank's two buffers; `planned`: what jobs would take without a table. */
export interface TuneRow {
  readonly collective: CollectiveWord;
  readonly bytes: number;
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
  readonly channels: number;
  readonly threads: number;
  readonly timeUs: number;
  /** How far the middle half of the rounds lay apart, as a part of timeUs. */
  readonly spread: number;
  readonly planned: boolean;
}

/** The mean number of processors of one machine that others kept busy while the ranks measured. */
export interface MachineLoad {
  readonly host: string;
  readonly processors: number;
  readonly others: number;
}

interface TuneLoad {
  readonly load: readonly MachineLoad[];
}

type TuneLine = TuneHead | TuneRow | TuneLoad;

export function isTuneRow(value: TuneLine): value is TuneRow {
  return 'collective' in value;
}

export function isTuneLoad(value: TuneLine): value is TuneLoad {
  return 'load' in value;
}

/** null: the line is none of these; it is somebody else's output. */
export function parseTuneLine(text: string): TuneLine | null {
  const value = objectOfLine(text);
  if (value === null) return null;
  const row = v.safeParse(line, value);
  if (!row.success) {
    const parsed = v.safeParse(v.union([head, load]), value);
    return parsed.success ? parsed.output : null;
  }
  const algorithm = ALGORITHMS[row.output.algorithm];
  const protocol = PROTOCOLS[row.output.protocol];
  return algorithm === undefined || protocol === undefined ? null : { ...row.output, algorithm, protocol };
}
