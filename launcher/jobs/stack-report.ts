import * as v from 'valibot';
import { stackFields } from '../../control/link/stack.ts';
import { checkedJson } from '../../control/link/checked-json.ts';
import type { StackReport } from '../model/stack.ts';

const MAX_BYTES = 128 * 1024 * 1024;

const whole = v.pipe(v.number(), v.integer(), v.minValue(0));

const report: v.GenericSchema<StackReport> = v.object({
  schemaVersion: v.literal(1),
  takenAt: whole,
  ranks: v.array(v.object({ host: v.string(), ...stackFields })),
  missing: v.string(),
});

/** What a job's launcher answers. @throws ProtocolError */
export function parseStackReport(bytes: Uint8Array): StackReport {
  return checkedJson(report, bytes, 'stacks', MAX_BYTES);
}
