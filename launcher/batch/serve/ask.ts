/** The other commands' side: asks a batch's scheduler. */
import { connect } from 'node:net';
import * as v from 'valibot';
import { messageOf } from '../../../control/message-of.ts';
import { leaveStopped, refuseStopped } from '../../local/stopped-process.ts';
import { usageError } from '../../model/usage-error.ts';
import { readIfThere } from '../attempt/durable-file.ts';
import { errorCode } from '../attempt/error-code.ts';
import { type BatchAnswer, batchAnswer, type BatchRequest, schedulerNote } from './request.ts';

/** Null: no scheduler runs, which the note may not know yet. Rejects with a FailureError (usage) for what it refuses. */
export async function askScheduler(notePath: string, request: BatchRequest): Promise<BatchAnswer | null> {
  const content = readIfThere(notePath);
  if (content === null) return null;
  const note = v.parse(schedulerNote, JSON.parse(content));
  const scheduler = `the scheduler of the batch (process ${note.pid})`;
  const stopped = `${scheduler} does not answer: it is stopped`;
  refuseStopped(note.pid, stopped);
  const socket = connect(`\0${note.socket}`);
  let text = '';
  try {
    leaveStopped(note.pid, socket); // one that is not stopped may wait for Slurm, for as long as that takes
    socket.setEncoding('utf8');
    socket.write(`${JSON.stringify({ key: note.key, request })}\n`);
    for await (const more of socket) text += String(more);
  } catch (error) {
    if (errorCode(error) === 'ECONNREFUSED') return null;
    refuseStopped(note.pid, stopped);
    const remedy = `see what process ${note.pid} does; the batch goes on with ncclrun batch --resume once it has ended`;
    throw usageError(`${scheduler} does not answer: ${messageOf(error)}`, remedy);
  }
  if (text === '') return null; // it ended meanwhile
  const answer = v.parse(batchAnswer, JSON.parse(text));
  if (answer.answer === 'refused') throw usageError(answer.message, answer.remedy);
  return answer;
}
