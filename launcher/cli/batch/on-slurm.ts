/** `ncclrun batch FILE --via slurm`: Slurm schedules what the file says. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import type { BatchSpec } from '../../batch/model/spec.ts';
import { taskName } from '../../batch/run/task-name.ts';
import type { BatchAnswer, BatchRequest, BatchStatus } from '../../batch/serve/request.ts';
import { BatchServer } from '../../batch/serve/server.ts';
import { slurmEventText } from '../../batch/slurm/event-text.ts';
import { openSlurm, openSlurmIfFree } from '../../batch/slurm/open.ts';
import { noticesOf } from '../../batch/slurm/plan/notices.ts';
import { refuseOnSlurm } from '../../batch/slurm/plan/refuse.ts';
import { dryRunText } from '../../batch/slurm/script/dry-run.ts';
import { makeResultDirectories } from '../../batch/slurm/script/make-directories.ts';
import { SlurmBatch } from '../../batch/slurm/slurm-batch.ts';
import { newKey, type SlurmFacts, writeFacts } from '../../batch/slurm/store/facts.ts';
import type { KnownPiece, PieceStore } from '../../batch/slurm/store/pieces.ts';
import { maxArraySize, USUAL_ARRAY_SIZE } from '../../batch/slurm/tools/limits.ts';
import { runTool } from '../../batch/slurm/tools/tool.ts';
import { watchBatch } from '../../batch/slurm/watch.ts';
import type { BatchDirectory } from '../../batch/state/directory.ts';
import type { Store } from '../../batch/store/store.ts';
import { installationRoot } from '../../local/host.ts';
import { FailureError } from '../../model/failure-error.ts';
import { usageError } from '../../model/usage-error.ts';
import { pause } from './pause.ts';
import { submittedJob } from './read-file.ts';

export interface SlurmSurroundings {
  /** A line of ncclrun's for the user. */
  say(this: void, text: string): void;
  readonly isQuiet: boolean;
  /** Returns once all is submitted. */
  readonly detaches: boolean;
}

export interface SlurmEnd {
  readonly spec: BatchSpec;
  readonly status: BatchStatus;
  /** ^C has ended the watch. */
  readonly isLeft: boolean;
}

const COMMAND = join(installationRoot, 'bin/ncclrun');

/** The commands that would be run, as a script. Throws a FailureError (usage) for what Slurm cannot do. */
export async function scriptsFor(
  spec: BatchSpec,
  file: string,
  id: string | null,
): Promise<{ text: string; notices: readonly string[] }> {
  refuseOnSlurm(spec, file);
  const size = await arraySizeIfKnown();
  const batch = id ?? `${spec.name}-1`;
  const { text, pieces } = dryRunText({ batch, spec, command: COMMAND, maxArraySize: size ?? USUAL_ARRAY_SIZE });
  const unknown = size === null ? [`Slurm does not answer here: arrays have up to ${USUAL_ARRAY_SIZE} tasks`] : [];
  return { text, notices: [...noticesOf(spec, pieces), ...unknown] };
}

/** Null: there is no Slurm here. */
async function arraySizeIfKnown(): Promise<number | null> {
  try {
    return await maxArraySize(runTool);
  } catch (error) {
    if (error instanceof FailureError) return null;
    throw error;
  }
}

/** What a new batch keeps. Rejects with a FailureError where Slurm is not there, or does not answer. */
export async function slurmFacts(): Promise<SlurmFacts> {
  return { schemaVersion: 1, key: newKey(), maxArraySize: await maxArraySize(runTool), command: COMMAND };
}

/** Submits a new batch and watches it. Rejects with a FailureError (usage) where sbatch refuses a job. */
export async function beginOnSlurm(
  spec: BatchSpec,
  file: string,
  directory: BatchDirectory,
  facts: SlurmFacts,
  surroundings: SlurmSurroundings,
): Promise<SlurmEnd> {
  try {
    // Throws for what Slurm cannot wait for.
    dryRunText({ batch: directory.id, spec, command: COMMAND, maxArraySize: facts.maxArraySize });
    makeResultDirectories(directory.id, spec, file);
  } catch (error) {
    rmSync(directory.path, { recursive: true });
    throw error;
  }
  writeFacts(directory, facts);
  const { store, pieces } = openSlurm(directory);
  return await goOn({ directory, facts, store, pieces }, surroundings, (batch) => {
    pieces.together(() => {
      store.submit({ id: directory.id, file, spec, createdAt: Date.now() });
      batch.plan();
    });
    for (const notice of noticesOf(spec, pieces.all)) surroundings.say(notice);
    return true;
  });
}

/** Submits what is not submitted yet, and watches. */
export async function resumeOnSlurm(
  directory: BatchDirectory,
  facts: SlurmFacts,
  surroundings: SlurmSurroundings,
): Promise<SlurmEnd> {
  const { store, pieces } = openSlurm(directory);
  refuseUnsubmitted(store, directory);
  store.resume();
  return await goOn({ directory, facts, store, pieces }, surroundings, () => false);
}

/** Throws a FailureError (usage), and closes the store then. */
function refuseUnsubmitted(store: Store, { id, path }: BatchDirectory): void {
  if (store.batch !== null) return;
  store.close();
  throw usageError(
    `batch ${id} was never submitted: ncclrun ended before`,
    `submit its file again; rm -r ${path} removes what is left`,
  );
}

interface Opened {
  readonly directory: BatchDirectory;
  readonly facts: SlurmFacts;
  readonly store: Store;
  readonly pieces: PieceStore;
}

/** `prepare` returns whether the batch is new. */
async function goOn(
  opened: Opened,
  { say, isQuiet, detaches }: SlurmSurroundings,
  prepare: (batch: SlurmBatch) => boolean,
): Promise<SlurmEnd> {
  const { directory, store, pieces } = opened;
  let news = 0;
  const batch = slurmBatchOf(opened, say, (text) => {
    news += 1;
    if (!isQuiet) say(text);
  });
  const leaving = leaveOnInterrupt();
  let server: BatchServer | null = null;
  try {
    const isNew = prepare(batch);
    server = await BatchServer.open(directory.note, (request) => batch.answer(request, process.pid));
    await batch.submit(isNew);
    if (!isQuiet) say(`batch ${directory.id} is in Slurm: ${jobsText(pieces.all)}`);
    if (!detaches)
      await watchBatch({
        batch,
        say,
        news: () => news,
        pause: (milliseconds) => Promise.race([pause(milliseconds), leaving.left]),
        isLeft: () => leaving.isLeft,
      });
  } catch (error) {
    batch.close();
    throw error;
  } finally {
    server?.close();
    leaving.close();
  }
  const { spec } = store;
  return { spec, status: batch.close(), isLeft: leaving.isLeft };
}

/** `jobs 12, 13 and 14`, the first and the last where there are many. */
function jobsText(pieces: readonly KnownPiece[]): string {
  const jobs = pieces.flatMap(({ slurmJob, stage }) => (slurmJob === null || stage === 'dropped' ? [] : [slurmJob]));
  const [first, last] = [jobs[0], jobs.at(-1)];
  return jobs.length <= MOST_NAMED ? `jobs ${jobs.join(', ')}` : `${jobs.length} jobs, ${first} to ${last}`;
}

const MOST_NAMED = 8;

/** ^C and SIGTERM end the watch alone: Slurm runs the jobs. */
function leaveOnInterrupt(): { readonly isLeft: boolean; readonly left: Promise<void>; close(): void } {
  const left = Promise.withResolvers<void>();
  let isLeft = false;
  const leave = (): void => {
    isLeft = true;
    left.resolve();
  };
  process.on('SIGINT', leave).on('SIGTERM', leave);
  return {
    get isLeft() {
      return isLeft;
    },
    left: left.promise,
    close: () => void process.off('SIGINT', leave).off('SIGTERM', leave),
  };
}

/** Null: another process has the batch. */
export async function answerFromSlurm(
  directory: BatchDirectory,
  facts: SlurmFacts,
  request: BatchRequest,
): Promise<BatchAnswer | null> {
  const stores = openSlurmIfFree(directory);
  if (stores === null) return null;
  refuseUnsubmitted(stores.store, directory);
  const batch = slurmBatchOf(
    { directory, facts, ...stores },
    () => {},
    () => {},
  );
  try {
    return await batch.answer(request, null);
  } finally {
    batch.close();
  }
}

function slurmBatchOf(
  { directory, facts, store, pieces }: Opened,
  say: (text: string) => void,
  tell: (text: string) => void,
): SlurmBatch {
  return new SlurmBatch({
    directory,
    facts,
    store,
    pieces,
    tool: runTool,
    now: Date.now,
    pause,
    jobOf: submittedJob,
    emit: (event) => tell(slurmEventText(event, (id) => taskName(store.spec, store.task(id)), Date.now())),
    say,
  });
}
