/** The times of every variant that was measured on a machine, as they lie in the cache directory. */
import * as v from 'valibot';
import { ALGORITHMS, COLLECTIVES, DEVICES, PROTOCOLS } from '../../plan/layout.ts';
import { FORMAT_VERSION } from './key.ts';
import { messageOf } from '../../message-of.ts';

const whole = v.pipe(v.number(), v.integer(), v.minValue(1));
const text = v.nullable(v.string());
const number = v.nullable(v.number());

const variant = v.strictObject({
  algorithm: v.picklist(ALGORITHMS),
  protocol: v.picklist(PROTOCOLS),
  channels: whole,
  threads: v.pipe(whole, v.multipleOf(32), v.minValue(64), v.maxValue(1024)),
  /** Bytes (of the larger of a rank's two buffers) and microseconds, by rising size. */
  times: v.pipe(
    v.array(v.tuple([whole, v.pipe(v.number(), v.gtValue(0))])),
    v.minLength(1),
    v.check((times) => isRising(times), 'sizes must rise'),
  ),
});

/** Characters: hosts whose numbers of ranks change from one to the next need most. */
const MAX_LAYOUT = 1_000_000;

const table = v.strictObject({
  formatVersion: v.literal(FORMAT_VERSION),
  key: v.strictObject({
    device: v.picklist(DEVICES),
    ranks: whole,
    topology: text,
    processor: text,
    cores: number,
    gpu: text,
    computeCapability: number,
    driver: text,
    between: v.exactOptional(
      v.strictObject({
        hosts: v.pipe(whole, v.minValue(2)),
        layout: v.pipe(
          v.string(),
          v.maxLength(MAX_LAYOUT),
          v.regex(/^[1-9]\d{0,6}x[1-9]\d{0,6}(?: [1-9]\d{0,6}x[1-9]\d{0,6})*$/u),
        ),
        network: v.string(),
        nics: whole,
        speedMbps: v.pipe(v.number(), v.minValue(0)),
        isOneMachine: v.boolean(),
        sockets: whole,
        socketThreads: v.pipe(v.number(), v.integer(), v.minValue(0)),
        reduction: v.exactOptional(v.string()),
      }),
    ),
  }),
  /** ISO 8601; and the version of ncclrun: for people. */
  measuredAt: v.string(),
  version: v.string(),
  collectives: v.array(
    v.strictObject({ collective: v.picklist(COLLECTIVES), variants: v.pipe(v.array(variant), v.minLength(1)) }),
  ),
});

export type Table = Readonly<v.InferOutput<typeof table>>;
export type MeasuredVariant = Readonly<v.InferOutput<typeof variant>>;
export type MeasuredTimes = MeasuredVariant['times'];

/** Error of a file that is no table; the message has the location. */
export class TableError extends Error {
  override readonly name = 'TableError';
}

/** Throws a TableError. */
export function parseTable(json: string): Table {
  let value: unknown;
  try {
    value = JSON.parse(json);
  } catch (error) {
    throw new TableError(`no JSON: ${messageOf(error)}`);
  }
  const result = v.safeParse(table, value);
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw new TableError(`${v.getDotPath(issue) ?? 'the whole'}: ${issue.message}`);
}

/** A line for each variant. */
export function printTable({ collectives, ...head }: Table): string {
  const parts = collectives.map(({ collective, variants }) => {
    const lines = variants.map((one) => `   ${JSON.stringify(one)}`);
    return `  { "collective": "${collective}", "variants": [\n${lines.join(',\n')} ] }`;
  });
  return `${JSON.stringify(head, null, 1).slice(0, -2)},\n "collectives": [\n${parts.join(',\n')} ]\n}\n`;
}

function isRising(times: readonly (readonly [number, number])[]): boolean {
  return times.every(([bytes], index) => bytes > (times[index - 1]?.[0] ?? 0));
}
