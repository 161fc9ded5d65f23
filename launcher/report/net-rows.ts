/** What the ranks of `ncclrun perf net` measure: one JSON object per line on rank 0's stdout: the network, each host, then pairs. */
import { objectOfLine } from './measured-lines.ts';
import * as v from 'valibot';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

const network = v.object({ network: v.string(), hosts: count });
const host = v.object({
  host: count,
  name: v.string(),
  nics: v.array(v.object({ name: v.string(), address: v.string(), port: count, speedMbps: count })),
});
const ends = { from: count, fromNic: count, to: count, toNic: count };
const measured = v.object({
  ...ends,
  latencyUs: v.number(),
  latency99Us: v.number(),
  gigabytes: v.array(v.number()),
  retransmits: v.pipe(v.number(), v.integer()),
  sentBytes: count,
  error: v.null(),
});
const failed = v.object({ ...ends, error: v.string() });
const line = v.union([network, host, measured, failed]);

export type NetNetwork = v.InferOutput<typeof network>;
export type NetHost = v.InferOutput<typeof host>;
/** One way between two NICs. Latency of 8 bytes, in microseconds: median and 99th percentile; GB/s (10⁹ bytes) by size; packets that TCP sent again, of so many bytes (-1: nobody counts). */
export type MeasuredPair = v.InferOutput<typeof measured>;
export type NetPair = MeasuredPair | v.InferOutput<typeof failed>;

/** null: the line is none of them; it is somebody else's output. */
export function parseNetLine(text: string): v.InferOutput<typeof line> | null {
  const value = objectOfLine(text);
  if (value === null) return null;
  const read = v.safeParse(line, value);
  return read.success ? read.output : null;
}

export function isMeasured(pair: NetPair): pair is MeasuredPair {
  return pair.error === null;
}
