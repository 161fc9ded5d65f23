/** The running jobs of this user that were started from this machine. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import * as v from 'valibot';
import { refuseStopped } from '../local/stopped-process.ts';
import { nearest } from '../text/nearest.ts';
import { usageError } from '../model/usage-error.ts';
import { NOTE_NAME, type Note } from './note.ts';

export interface RunningJob extends Note {
  /** Of ncclrun. */
  readonly pid: number;
}

/** As a link of /proc/PID/fd names such memory. */
const LINK = `/memfd:${NOTE_NAME} (deleted)`;

const whole = v.pipe(v.number(), v.integer(), v.minValue(0));

const noteSchema: v.GenericSchema<unknown, Note> = v.object({
  schemaVersion: v.literal(1),
  jobId: v.string(),
  startedAt: whole,
  programs: v.array(v.array(v.string())),
  hosts: v.array(v.object({ name: v.string(), ranks: v.array(whole) })),
  output: v.exactOptional(v.object({ socket: v.string(), key: v.string() })),
});

/** The oldest first. What other users run cannot be read, and is not listed for root either. */
export function runningJobs(): RunningJob[] {
  const pids = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  return pids.flatMap(jobOf).toSorted((one, other) => one.startedAt - other.startedAt);
}

/**
 * By its id or the beginning of that, or by the process of ncclrun. Throws a FailureError (usage) unless there is one such job. `ofEnded`: a sentence
 * about jobs that no longer run.
 */
function findJob(word: string, ofEnded: string | null): RunningJob {
  const jobs = runningJobs();
  const exact = jobs.filter(({ jobId, pid }) => jobId === word || String(pid) === word);
  const found = exact.length > 0 ? exact : jobs.filter(({ jobId }) => jobId.startsWith(word));
  const [job, ...others] = found;
  if (job !== undefined && others.length === 0) return job;
  if (found.length > 0)
    throw usageError(
      `${found.length} jobs of yours on this machine are called "${word}"`,
      'ncclrun ps lists those that run',
    );
  const meant = nearest(
    word,
    jobs.map(({ jobId }) => jobId),
  );
  const listed =
    meant === null ? 'ncclrun ps lists those that run' : `did you mean ${meant}? ncclrun ps lists those that run`;
  throw usageError(
    `no running job of yours on this machine is called "${word}"`,
    ofEnded === null || meant !== null ? listed : `${listed}; ${ofEnded}`,
  );
}

/** The only word of a command. Throws as findJob does. */
export function namedJob(
  command: string,
  [word, ...others]: readonly string[],
  ofEnded: string | null = null,
): RunningJob {
  if (word !== undefined && others.length === 0) return findJob(word, ofEnded);
  const count = word === undefined ? 0 : 1 + others.length;
  throw usageError(
    `${command} needs one job, and has ${count}`,
    `write ncclrun ${command} JOB, as ncclrun ps lists it`,
  );
}

/** What ncclrun ps prints of a job: not the key to its output. */
export function listed({
  jobId,
  pid,
  startedAt,
  programs,
  hosts,
}: RunningJob): Omit<RunningJob, 'output' | 'schemaVersion'> {
  return { jobId, startedAt, programs, hosts, pid };
}

export function isRunning(job: RunningJob): boolean {
  return jobNow(job) !== null;
}

/** What its note says now; null: it has ended. */
export function jobNow({ pid, jobId }: RunningJob): RunningJob | null {
  return jobOf(String(pid)).find((job) => job.jobId === jobId) ?? null;
}

function jobOf(pid: string): RunningJob[] {
  try {
    if (!isOurs(pid)) return [];
    for (const descriptor of readdirSync(`/proc/${pid}/fd`)) {
      const path = `/proc/${pid}/fd/${descriptor}`;
      if (targetOf(path) !== LINK) continue;
      const note = v.safeParse(noteSchema, JSON.parse(readFileSync(path, 'utf8')));
      if (note.success) return [{ ...note.output, pid: Number(pid) }];
    }
  } catch {
    // It has ended meanwhile, or is nobody's that we may look at.
  }
  return [];
}

/** Null for a descriptor that was closed meanwhile: the note may be behind it. */
function targetOf(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

/** By its effective user. */
function isOurs(pid: string): boolean {
  const uids = /^Uid:\t[0-9]+\t([0-9]+)/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'));
  return uids !== null && Number(uids[1]) === process.geteuid?.();
}

/** Throws a FailureError (usage) for a job whose launcher answers nobody. */
export function refuseStoppedJob({ jobId, pid }: RunningJob): void {
  refuseStopped(pid, `job ${jobId} does not answer: its ncclrun (process ${pid}) is stopped`);
}
