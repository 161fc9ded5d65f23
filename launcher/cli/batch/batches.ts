/** Batches by their ids, and what is asked of them: of their scheduler, or, where none runs, of what is on the disk. */
import { pause } from './pause.ts';
import { openStoreIfFree, readHosts, Session } from '../../batch/session.ts';
import { askScheduler } from '../../batch/serve/ask.ts';
import type { BatchAnswer, BatchRequest, BatchStatus } from '../../batch/serve/request.ts';
import {
  type BatchDirectory,
  batchIds,
  BatchDirectory as Directory,
  existingRoot,
  foundBatch,
} from '../../batch/state/directory.ts';
import { readFacts } from '../../batch/slurm/store/facts.ts';
import { submittedJob } from './read-file.ts';
import { usageError } from '../../model/usage-error.ts';

/** A scheduler that begins or ends has the database and does not answer yet, or any more. */
const ATTEMPTS = 40;
const BETWEEN_MS = 50;

export function allBatches(environment: NodeJS.ProcessEnv): BatchDirectory[] {
  const path = existingRoot(environment);
  return batchIds(path).map((id) => new Directory(path, id));
}

/** `sweep-1/train[3]`: the batch, and which of its tasks; empty: all. Throws a FailureError (usage). */
export function namedBatch(
  word: string,
  environment: NodeJS.ProcessEnv,
): { readonly directory: BatchDirectory; readonly tasks: string } {
  const [id = '', ...tasks] = word.split('/');
  return { directory: foundBatch(existingRoot(environment), id), tasks: tasks.join('/') };
}

/** Throws a FailureError (usage) for a word that names a batch where one of its tasks is meant. */
export function refuseBatch(word: string, environment: NodeJS.ProcessEnv): void {
  if (!allBatches(environment).some(({ id }) => id === word)) return;
  throw usageError(
    `${word} is a batch`,
    `write one of its tasks, as ncclrun jobs ${word} lists them: ncclrun logs ${word}/TASK`,
  );
}

/** Rejects with a FailureError (usage) for what is refused. */
export async function askBatch(directory: BatchDirectory, request: BatchRequest): Promise<BatchAnswer> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const answer = (await askScheduler(directory.note, request)) ?? (await answerWithoutScheduler(directory, request));
    if (answer !== null) return answer;
    await pause(BETWEEN_MS);
  }
  throw usageError(
    `the scheduler of batch ${directory.id} does not answer`,
    `is it stopped? ncclrun batch --resume ${directory.id} works once it has ended`,
  );
}

export async function statusOfBatch(directory: BatchDirectory): Promise<BatchStatus> {
  const answer = await askBatch(directory, { asks: 'status' });
  if (answer.answer !== 'status') throw new Error(`a question for the status was answered with ${answer.answer}`);
  return answer.status;
}

/** Null: somebody has the database. */
async function answerWithoutScheduler(directory: BatchDirectory, request: BatchRequest): Promise<BatchAnswer | null> {
  const facts = readFacts(directory);
  if (facts === null) return answerFromDisk(directory, request);
  const { answerFromSlurm } = await import('./on-slurm.ts');
  return await answerFromSlurm(directory, facts, request);
}

/** Null: somebody has the database. */
function answerFromDisk(directory: BatchDirectory, request: BatchRequest): BatchAnswer | null {
  const store = openStoreIfFree(directory);
  if (store === null) return null;
  if (store.batch === null) {
    store.close();
    throw usageError(
      `batch ${directory.id} was never submitted: its scheduler ended before`,
      `submit its file again; rm -r ${directory.path} removes what is left`,
    );
  }
  const session = new Session(store, store.batch.generation, {
    directory,
    command: '',
    hosts: readHosts(directory),
    jobOf: submittedJob,
    emit() {},
  });
  try {
    return session.answer(request);
  } finally {
    session.close();
  }
}
