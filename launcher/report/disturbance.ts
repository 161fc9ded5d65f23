/** What may have disturbed a measurement between hosts: a line of each rank, the last of its own. */
import * as v from 'valibot';
import { objectOfLine } from './measured-lines.ts';

const size = v.pipe(v.number(), v.minValue(0));
const disturbance = v.object({
  rank: v.pipe(size, v.integer()),
  seconds: size,
  /** In which the rank could have run, and had no processor. */
  waitedSeconds: size,
  /** Packets that TCP sent again from its host although the receiver had them. */
  needlessPackets: v.pipe(size, v.integer()),
});
export type Disturbance = v.InferOutput<typeof disturbance>;

/** null: the line is something else. */
export function parseDisturbance(text: string): Disturbance | null {
  const read = v.safeParse(disturbance, objectOfLine(text));
  return read.success ? read.output : null;
}
