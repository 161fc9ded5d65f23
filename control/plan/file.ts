/** `--plan FILE`: a CommPlan as JSON, or the HostPlan of any of its hosts (each holds the whole CommPlan). */
import { readFileUpTo } from '../read-file.ts';
import { decodeHostPlan, isHostPlan } from './decode.ts';
import { planFromJson } from './json.ts';
import type { WrittenPlan } from './types.ts';
import { PlanError } from './validate.ts';
import { messageOf } from '../message-of.ts';

/** A plan for 100,000 ranks has less; a device such as /dev/zero has no end. */
const MAX_BYTES = 256 * 1024 * 1024;

/** What any program may come to call, `ncclrun perf` too; rows for others it knows to need. */
const NEEDED = ['allReduce', 'barrier', 'sendRecv'] as const;

/** Throws a PlanError that begins with the file's name. */
export function readPlanFile(path: string): WrittenPlan {
  const plan = readPlan(path);
  const lacking = NEEDED.filter((needed) => plan.tuning.every(({ collective }) => collective !== needed));
  if (lacking.length === 0) return plan;
  throw new PlanError(
    `${path}: tuning: has no row for ${lacking.join(' and ')}; every plan needs rows for allReduce, barrier and sendRecv`,
  );
}

function readPlan(path: string): WrittenPlan {
  const bytes = readBytes(path);
  if (!isHostPlan(bytes)) return planFromJson(bytes.toString('utf8'), path);
  try {
    return decodeHostPlan(bytes).plan;
  } catch (error) {
    if (error instanceof PlanError) throw new PlanError(`${path}: ${error.message}`);
    throw error;
  }
}

function readBytes(path: string): Buffer {
  try {
    return readFileUpTo(path, MAX_BYTES);
  } catch (error) {
    throw new PlanError(`${path}: cannot be read: ${messageOf(error)}`);
  }
}
