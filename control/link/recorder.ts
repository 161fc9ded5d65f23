/** Validation of the recorder's frames and of the recorder in files: agents and files may be damaged, and a rank's memory may hold anything. */
import * as v from 'valibot';
import {
  RECORDER_COMMUNICATORS,
  RECORDER_ENTRIES,
  RECORDER_GPUS,
  type RecordedCommunicator,
  type RecordedProcess,
  type RecorderAnswer,
  type RecorderQuery,
} from '../messages/recorder.ts';
import { checkedJson } from './checked-json.ts';

const whole = v.pipe(v.number(), v.integer(), v.minValue(0));
const rank = v.pipe(v.number(), v.integer(), v.minValue(-1));
/** An answer's size is bounded by what one process can have recorded. */
const MAX_ANSWER_BYTES = 4 * 1024 * 1024;

const communicator: v.GenericSchema<RecordedCommunicator> = v.object({
  index: v.pipe(whole, v.maxValue(RECORDER_COMMUNICATORS - 1)),
  id: v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/)),
  epoch: whole,
  size: whole,
  rank: whole,
  name: v.pipe(v.string(), v.maxLength(64)),
});

const processFields = {
  rank,
  pid: whole,
  gpu: v.nullable(v.object({ index: whole, address: v.nullable(v.pipe(v.string(), v.maxLength(64))) })),
  recorded: whole,
  oldest: whole,
  unlisted: whole,
  communicators: v.pipe(v.array(communicator), v.maxLength(RECORDER_COMMUNICATORS)),
  entries: v.pipe(v.string(), v.maxLength(MAX_ANSWER_BYTES)),
  gpuErrorNs: v.exactOptional(whole),
  replays: v.exactOptional(
    v.pipe(
      v.array(v.object({ recorded: whole, oldest: whole, entries: v.pipe(v.string(), v.maxLength(MAX_ANSWER_BYTES)) })),
      v.maxLength(RECORDER_GPUS),
    ),
  ),
};

export const recordedProcess: v.GenericSchema<RecordedProcess> = v.object(processFields);

const query: v.GenericSchema<RecorderQuery> = v.object({
  last: v.pipe(whole, v.maxValue(RECORDER_ENTRIES)),
  full: v.array(whole),
});

const answer: v.GenericSchema<RecorderAnswer> = v.variant('type', [
  v.object({ type: v.literal('process'), ...processFields }),
  v.object({ type: v.literal('end') }),
]);

export function parseRecorderQuery(payload: Uint8Array): RecorderQuery {
  return checkedJson(query, payload, 'recorder', MAX_ANSWER_BYTES);
}

export function parseRecorderAnswer(payload: Uint8Array): RecorderAnswer {
  return checkedJson(answer, payload, 'recorder', MAX_ANSWER_BYTES);
}
