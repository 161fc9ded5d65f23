/** `ncclrun logs BATCH/TASK`: what a task has printed, and prints. */
import { type FileHandle, open } from 'node:fs/promises';
import { pause } from './pause.ts';
import type { TaskStatus } from '../../batch/serve/request.ts';
import { hasEnded } from '../../batch/model/states.ts';
import { errorCode } from '../../batch/attempt/error-code.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { namedBatch, statusOfBatch } from './batches.ts';

const LOOK_MS = 200;
/** Every look costs Slurm's daemon time. */
const LOOK_AT_SLURM_MS = 2000;
const CHUNK_BYTES = 64 * 1024;

/** `follows`: until the task has ended; its status then. Throws a FailureError (usage) for a task that is not there, or has printed nothing yet. */
export async function printTaskOutput(word: string, follows: boolean): Promise<number> {
  let { task, inSlurm } = await taskCalled(word);
  if (task.output === null && !follows)
    throw usageError(
      `${task.name} has not run yet${task.message === '' ? '' : `: ${task.message}`}`,
      'with -f, logs waits for it',
    );
  const reader = new Reader();
  for (;;) {
    const isOver = hasEnded(task.state);
    if (task.output !== null) await reader.printNew(task.output);
    if (!follows) return 0;
    if (isOver) return task.exitCode ?? 1;
    await pause(inSlurm ? LOOK_AT_SLURM_MS : LOOK_MS);
    ({ task, inSlurm } = await taskCalled(word));
  }
}

async function taskCalled(word: string): Promise<{ task: TaskStatus; inSlurm: boolean }> {
  const { directory, tasks: name } = namedBatch(word, process.env);
  const { tasks, via } = await statusOfBatch(directory);
  const found = tasks.filter((task) => task.name === name || task.name.startsWith(`${name}[`));
  const [task, ...others] = found;
  if (task === undefined)
    throw usageError(`batch ${directory.id} has no task "${name}"`, `ncclrun jobs ${directory.id} lists them`);
  if (others.length > 0)
    throw usageError(
      `${name} has ${found.length} tasks`,
      `write one of them: ncclrun logs ${directory.id}/${task.name}`,
    );
  return { task, inSlurm: via === 'slurm' };
}

/** Of a file that grows, and of the next one when an attempt has another. */
class Reader {
  #path = '';
  #at = 0;
  #decoder = new TextDecoder();

  /** What has been added since the last time. A file that is not there yet has nothing. */
  async printNew(path: string): Promise<void> {
    if (path !== this.#path) [this.#path, this.#at, this.#decoder] = [path, 0, new TextDecoder()];
    const file = await openIfThere(path);
    if (file === null) return;
    try {
      const buffer = Buffer.alloc(CHUNK_BYTES);
      for (;;) {
        const { bytesRead } = await file.read(buffer, 0, CHUNK_BYTES, this.#at);
        if (bytesRead === 0) return;
        this.#at += bytesRead;
        await standardStreams().stdout.print(this.#decoder.decode(buffer.subarray(0, bytesRead), { stream: true }));
      }
    } finally {
      await file.close();
    }
  }
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path);
  } catch (error) {
    const code = errorCode(error);
    if (code === 'ENOENT') return null;
    throw usageError(`${path} cannot be read (${code ?? 'error'})`, null);
  }
}
