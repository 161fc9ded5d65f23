/** Validation of the frames by which launcher and agents ask for stacks: agents may be damaged, and so may what a rank's memory holds. */
import * as v from 'valibot';
import {
  MAX_FRAMES,
  MAX_STACK_TEXT,
  MAX_THREADS,
  STACK_LANGUAGES,
  type StackAnswer,
  type StackFrame,
  type StackQuery,
  type ThreadStack,
} from '../messages/stack.ts';
import { checkedJson } from './checked-json.ts';

const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
const text = v.pipe(v.string(), v.maxLength(MAX_STACK_TEXT));
const MAX_BYTES = 16 * 1024 * 1024;
const MAX_DEADLINE_MS = 10_000;

const frame: v.GenericSchema<StackFrame> = v.object({
  language: v.picklist(STACK_LANGUAGES),
  function: v.nullable(text),
  file: v.nullable(text),
  line: v.nullable(whole),
  module: v.nullable(text),
});

const thread: v.GenericSchema<ThreadStack> = v.object({
  thread: whole,
  name: text,
  isMain: v.boolean(),
  isEngine: v.boolean(),
  problem: v.nullable(text),
  frames: v.pipe(v.array(frame), v.maxLength(2 * MAX_FRAMES)),
  isCut: v.boolean(),
});

const query: v.GenericSchema<StackQuery> = v.object({
  ranks: v.array(whole),
  deadlineMs: v.pipe(whole, v.maxValue(MAX_DEADLINE_MS)),
});

/** Of a RankStack. */
export const stackFields = {
  rank: whole,
  pid: whole,
  problem: v.nullable(text),
  threads: v.pipe(v.array(thread), v.maxLength(MAX_THREADS)),
  omittedThreads: whole,
};

const answer: v.GenericSchema<StackAnswer> = v.variant('type', [
  v.object({ type: v.literal('rank'), ...stackFields }),
  v.object({ type: v.literal('end') }),
]);

export function parseStackQuery(payload: Uint8Array): StackQuery {
  return checkedJson(query, payload, 'stacks', MAX_BYTES);
}

export function parseStackAnswer(payload: Uint8Array): StackAnswer {
  return checkedJson(answer, payload, 'stacks', MAX_BYTES);
}
