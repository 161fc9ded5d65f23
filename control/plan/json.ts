/** A CommPlan as JSON: what `--plan FILE` reads and people edit. */
import * as v from 'valibot';
import { gpuNic, network, nic } from './network-json.ts';
import { ALGORITHMS, COLLECTIVES, DEVICES, PRECONDITIONS, PROTOCOLS, TRANSPORTS } from './layout.ts';
import { COPY_TIMEOUTS } from './types.ts';
import type { CommPlan, WrittenPlan } from './types.ts';
import { PlanError, validatePlan } from './validate.ts';
import { messageOf } from '../message-of.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const buffer = v.strictObject({ steps: count, stepBytes: count });
const gpuBuffers = v.strictObject({
  wideChannels: count,
  narrowStepBytes: count,
  lineSteps: count,
  llStepBytes: count,
  ll128StepBytes: count,
  pairChannels: count,
});

const variant = v.strictObject({
  algorithm: v.picklist(ALGORITHMS),
  protocol: v.picklist(PROTOCOLS),
  channels: count,
  chunkBytes: count,
  threads: count,
  requires: v.optional(v.array(v.picklist(PRECONDITIONS)), []),
  asMessages: v.optional(v.boolean(), false),
  predictedMicroseconds: v.optional(v.number(), 0),
  predictedMicrosecondsPerMebibyte: v.optional(v.number(), 0),
});

const planSchema = v.strictObject({
  formatVersion: v.literal(1),
  peers: v.array(
    v.strictObject({ host: count, listenPort: v.optional(count, 0), pairNic: v.optional(v.nullable(count), null) }),
  ),
  hosts: v.array(
    v.strictObject({
      name: v.string(),
      address: v.string(),
      nics: v.optional(v.array(nic), []),
      gpuNics: v.optional(v.array(gpuNic), []),
    }),
  ),
  channels: v.array(
    v.strictObject({
      ring: v.array(count),
      tree: v.optional(v.nullable(v.array(count)), null),
      rail: v.optional(v.nullable(count), null),
    }),
  ),
  device: v.optional(v.picklist(DEVICES), 'host'),
  transports: v.strictObject({ sameHost: v.picklist(TRANSPORTS), otherHost: v.picklist(TRANSPORTS) }),
  network: v.optional(v.nullable(network), null),
  ringBuffer: buffer,
  pairBuffer: buffer,
  gpuBuffers: v.optional(v.nullable(gpuBuffers), null),
  tuning: v.array(
    v.strictObject({ collective: v.picklist(COLLECTIVES), upToBytes: v.nullable(count), variants: v.array(variant) }),
  ),
  copyChannels: v.optional(count, 1),
  smsPerLaunch: v.optional(count),
  copyTimeouts: v.optional(
    v.strictObject({ minMicroseconds: count, maxMicroseconds: count, capturedMicroseconds: count }),
    COPY_TIMEOUTS,
  ),
  spinNanoseconds: count,
  token: v.optional(v.string(), '0'.repeat(32)),
});

/** Throws a PlanError that names the field ("tuning.0.variants.1.algorithm: …"); `source` is named too. */
export function planFromJson(text: string, source: string): WrittenPlan {
  const parsed = v.safeParse(planSchema, parseJson(text, source));
  if (!parsed.success) {
    throw new PlanError(`${source}: ${describe(parsed.issues)}`);
  }
  const plan = { ...parsed.output, smsPerLaunch: parsed.output.smsPerLaunch ?? parsed.output.channels.length };
  try {
    validatePlan(plan, false);
  } catch (error) {
    if (error instanceof PlanError) throw new PlanError(`${source}: ${error.message}`);
    throw error;
  }
  return plan;
}

const MAX_COLUMNS = 200;

/** Lists of numbers and small records on a line of their own. */
export function planToJson(plan: WrittenPlan & Partial<Pick<CommPlan, 'aggregators'>>): string {
  const { aggregators: _ofJob, ...written } = plan;
  const lists = JSON.stringify(written, null, 2).replaceAll(/\[[^{}[\]]*\]/gu, onOneLine);
  return `${lists.replaceAll(/\{[^{}]*\}/gu, onOneLine)}\n`;
}

/** Where it fits. A line never ends inside a string. */
function onOneLine(part: string): string {
  const line = part.replaceAll(/\n\s*/gu, ' ');
  return line.length > MAX_COLUMNS ? part : line;
}

type Issue = v.InferIssue<typeof planSchema>;

/** An unknown field first: it is mostly a known one misspelt, and then "missing" would point to the wrong field. */
function describe(issues: readonly [Issue, ...Issue[]]): string {
  const isUnknown = (issue: Issue): boolean => issue.type === 'strict_object' && issue.expected === 'never';
  const isMissing = (issue: Issue): boolean => issue.path?.at(-1)?.origin === 'key' && !isUnknown(issue);
  const unknown = issues.find(isUnknown);
  const missing = issues.find(isMissing);
  if (unknown !== undefined) {
    return `${locationOf(unknown)}: there is no such field${missing === undefined ? '' : `; ${locationOf(missing)} is missing`}`;
  }
  const [first] = issues;
  return `${locationOf(first)}: ${isMissing(first) ? 'is missing' : first.message}`;
}

function locationOf(issue: Issue): string {
  return v.getDotPath(issue) ?? 'plan';
}

function parseJson(text: string, source: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new PlanError(`${source}: no JSON: ${messageOf(error)}`);
  }
}
