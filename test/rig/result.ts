/** The schema of the result object that --json prints and --report writes, as a user's script may rely on it. */
import * as v from 'valibot';
import type { JobResult } from '../../launcher/model/types.ts';

const timestamp = v.nullable(v.pipe(v.string(), v.isoTimestamp()));
const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
const milliseconds = v.pipe(v.number(), v.minValue(0));
const signal = v.nullable(
  v.custom<NodeJS.Signals>((value) => typeof value === 'string' && /^SIG[A-Z0-9]+$/.test(value)),
);
const reasons = [
  'ok',
  'usage',
  'hostfile',
  'allocation',
  'unrepeatable',
  'host-unreachable',
  'agent',
  'gpus-busy',
  'host-lost',
  'spawn',
  'rank-exit',
  'rank-signal',
  'rank-missing',
  'timeout',
  'spawn-timeout',
  'init-timeout',
  'hang',
  'interrupt',
  'output',
  'system',
  'internal',
] as const;

export const resultSchema = v.object({
  schemaVersion: v.literal(1),
  /** Empty where no job was made of the command. */
  jobId: v.string(),
  ok: v.boolean(),
  reason: v.picklist(reasons),
  exitCode: whole,
  restarts: whole,
  failures: v.array(
    v.custom<JobResult['failures'][number]>((value) => typeof value === 'object' && value !== null && 'type' in value),
  ),
  verdicts: v.array(
    v.custom<JobResult['verdicts'][number]>((value) => typeof value === 'object' && value !== null && 'kind' in value),
  ),
  hosts: v.array(v.object({ name: v.string(), ranks: v.array(whole), state: v.picklist(['ok', 'failed', 'lost']) })),
  ranks: v.array(
    v.object({
      rank: whole,
      host: v.string(),
      pid: v.nullable(whole),
      exitCode: v.nullable(whole),
      signal,
      startedAt: timestamp,
      endedAt: timestamp,
      endedByUs: v.boolean(),
    }),
  ),
  phases: v.object({
    allocate: milliseconds,
    connect: milliseconds,
    hello: milliseconds,
    spawn: milliseconds,
    run: milliseconds,
    teardown: milliseconds,
  }),
});

/** Parses exactly one result object; throws with the path of what is wrong. */
export function parseResult(text: string): JobResult {
  return v.parse(resultSchema, JSON.parse(text));
}
