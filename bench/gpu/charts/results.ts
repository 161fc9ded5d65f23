/** Reads what `collectives --json` writes (bench/gpu/report.c), or a table of one library's times, as curves. */
import * as v from 'valibot';
import { COLLECTIVE_WORDS } from '../../../control/collectives.ts';

/** Collectives that bench/gpu measures, in the order of the charts. */
export const MEASURED_COLLECTIVES = [
  COLLECTIVE_WORDS.allReduce,
  COLLECTIVE_WORDS.allGather,
  COLLECTIVE_WORDS.reduceScatter,
  COLLECTIVE_WORDS.broadcast,
  COLLECTIVE_WORDS.sendRecv,
  COLLECTIVE_WORDS.allToAll,
] as const;
export type MeasuredCollective = (typeof MEASURED_COLLECTIVES)[number];
/** How an operation is begun. */
export const TIMINGS = ['graph', 'eager'] as const;
export type Timing = (typeof TIMINGS)[number];
export type Library = 'ours' | 'theirs';
export type Buffers = 'plain' | 'window';

/** What the machine could do at best. Microseconds, GB/s. */
export interface Limits {
  readonly ranks: number;
  readonly launch: Readonly<Record<Timing, number>>;
  readonly copies: number;
  readonly stores: number;
}

export interface CurveName {
  readonly collective: MeasuredCollective;
  readonly timing: Timing;
  readonly library: Library;
  readonly buffers: Buffers;
}

export interface Point {
  /** Of the larger of a rank's two buffers. */
  readonly bytes: number;
  readonly microseconds: number;
  /** GB/s. */
  readonly bus: number;
}

export class Results {
  readonly #curves = new Map<string, Map<number, Point>>();
  limits: Limits | null = null;
  /** What libraries and machines were measured. */
  readonly about: string[] = [];

  /** What came first stays. */
  add({ collective, timing, library, buffers }: CurveName, point: Point): void {
    const key = `${collective} ${timing} ${library} ${buffers}`;
    const curve = this.#curves.get(key) ?? new Map<number, Point>();
    if (!curve.has(point.bytes)) curve.set(point.bytes, point);
    this.#curves.set(key, curve);
  }

  /** By rising size. */
  curve({ collective, timing, library, buffers }: CurveName): readonly Point[] {
    const points = this.#curves.get(`${collective} ${timing} ${library} ${buffers}`) ?? new Map<number, Point>();
    return [...points.values()].toSorted((one, other) => one.bytes - other.bytes);
  }
}

const figure = v.object({ us: v.optional(v.number()), bus_gbs: v.optional(v.number(), 0) });
const row = v.object({
  collective: v.picklist(MEASURED_COLLECTIVES),
  bytes: v.number(),
  mode: v.picklist(['eager', 'graph', 'eager-window', 'graph-window']),
  ranks: v.number(),
  theirs: figure,
  ours: figure,
});
const machine = v.object({
  empty_kernel_us: v.number(),
  empty_kernel_graph_us: v.number(),
  copies_gbs: v.number(),
  stores_gbs: v.optional(v.number()),
  ranks: v.optional(v.number()),
});
const library = v.object({ library: v.string(), version: v.number(), usable: v.boolean(), ranks: v.number() });
const table = v.object({
  what: v.string(),
  collectives: v.record(v.string(), v.record(v.string(), v.record(v.string(), v.tuple([v.number(), v.number()])))),
});
/** Barriers, joins, and cases that were lost, of which there is no curve. */
const other = v.union([
  v.object({ collective: v.literal('barrier') }),
  v.object({ init: v.string() }),
  v.object({ lost: v.string() }),
]);

/** Adds a file's text to the results; `name` is for errors. */
export function read(results: Results, text: string, name: string): void {
  const whole = valueOf(text);
  if (v.is(v.object({ collectives: v.unknown() }), whole)) {
    const parsed = v.safeParse(table, whole);
    if (!parsed.success) throw new Error(`${name}: ${v.summarize(parsed.issues)}`);
    readTable(results, parsed.output);
    return;
  }
  let ranks = 0;
  for (const [index, line] of text.split('\n').entries()) {
    if (line.trim() === '') continue;
    ranks = readLine(results, JSON.parse(line), ranks, `${name}:${index + 1}`);
  }
}

/** null: it is not one value, but a line for each. */
function valueOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Returns how many ranks there are, as far as it is known by now. */
function readLine(results: Results, value: unknown, ranks: number, place: string): number {
  const measured = v.safeParse(row, value);
  if (measured.success) {
    const { collective, bytes, mode } = measured.output;
    const timing: Timing = mode.startsWith('graph') ? 'graph' : 'eager';
    const buffers: Buffers = mode.endsWith('window') ? 'window' : 'plain';
    for (const which of ['ours', 'theirs'] as const) {
      const { us, bus_gbs: bus } = measured.output[which];
      const name = { collective, timing, library: which, buffers };
      if (us !== undefined) results.add(name, { bytes, microseconds: us, bus });
    }
    return measured.output.ranks;
  }
  const limits = v.safeParse(machine, value);
  if (limits.success) {
    const { empty_kernel_us: eager, empty_kernel_graph_us: graph, copies_gbs: copies, stores_gbs } = limits.output;
    // Older files have no stores.
    results.limits ??= {
      ranks: limits.output.ranks ?? ranks,
      launch: { eager, graph },
      copies,
      stores: stores_gbs ?? copies,
    };
    return ranks;
  }
  const opened = v.safeParse(library, value);
  if (opened.success) {
    results.about.push(`${opened.output.library}: version ${opened.output.version}, ${opened.output.ranks} ranks`);
    return opened.output.ranks;
  }
  if (v.is(other, value)) return ranks;
  throw new Error(`${place}: no line of collectives --json: ${v.summarize(measured.issues)}`);
}

/** Their library's times by collective, buffers and timing, and size: [microseconds, GB/s]. */
function readTable(results: Results, { what, collectives }: v.InferOutput<typeof table>): void {
  results.about.push(what);
  for (const collective of MEASURED_COLLECTIVES) {
    for (const timing of TIMINGS) {
      for (const buffers of ['plain', 'window'] as const) {
        const times = collectives[collective]?.[`${buffers}-${timing}`] ?? {};
        for (const [bytes, [microseconds, bus]] of Object.entries(times)) {
          if (Number(bytes) > 0)
            results.add(
              { collective, timing, library: 'theirs', buffers },
              { bytes: Number(bytes), microseconds, bus },
            );
        }
      }
    }
  }
}
