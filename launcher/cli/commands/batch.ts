/** `ncclrun batch FILE`: runs a file full of jobs on the hosts of a hostfile, or gives them to Slurm. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Session, openStore, readHosts, submitBatch, writeHosts } from '../../batch/session.ts';
import { foundBatch, newBatchDirectory, stateRoot, type BatchDirectory } from '../../batch/state/directory.ts';
import { refuseOnSlurm } from '../../batch/slurm/plan/refuse.ts';
import { readFacts } from '../../batch/slurm/store/facts.ts';
import type { BatchSpec } from '../../batch/model/spec.ts';
import type { Store } from '../../batch/store/store.ts';
import { refuseMisfit } from '../../batch/run/refuse-misfit.ts';
import { taskName } from '../../batch/run/task-name.ts';
import type { BatchStatus } from '../../batch/serve/request.ts';
import { eventText } from '../../batch/text/event-text.ts';
import { batchText, countsText } from '../../batch/text/status-table.ts';
import { allocateHosts } from '../../allocation/allocate.ts';
import { printHosts } from '../../allocation/print/grammars.ts';
import { installationRoot } from '../../local/host.ts';
import { usageError } from '../../model/usage-error.ts';
import { ProgressLine } from '../../batch/text/progress-line.ts';
import { isInForeground, isTerminal } from '../../model/terminal.ts';
import { Live } from '../../report/live.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { counted } from '../../text/counted.ts';
import { ourLine } from '../../report/summary.ts';
import { makePaint } from '../../text/colour.ts';
import { allocationRequest } from '../allocation-request.ts';
import { capacitiesOf, refuseGpuModels } from '../batch/capacities.ts';
import { predictedSchedule } from '../batch/predicted.ts';
import type { SlurmEnd, SlurmSurroundings } from '../batch/on-slurm.ts';
import { batchFile, submittedJob } from '../batch/read-file.ts';
import { batchCommandLine, type BatchOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import { reportRefusals } from '../report-refusals.ts';
import type { Settings } from '../settings.ts';

const HOW = 'write: ncclrun batch FILE --hostfile HOSTS; see ncclrun help batch';
const INTERRUPTED = 130;
/** Tasks that are listed at the end. */
const MAX_ROWS = 40;

const streams = standardStreams();

type BatchSettings = Settings<BatchOptionName>;

/** Returns 0 if no task failed, 1 if one did, 130 after ^C. Throws a FailureError (usage, hostfile). */
export async function batch(argv: readonly string[]): Promise<number> {
  const { asked, settings, files, words } = readCommandLine<BatchOptionName>(argv, batchCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('batch');
  if (asked === 'version') return (await import('./version.ts')).version();
  await reportRefusals(files);
  const id = settings.text('resume');
  const [file, ...others] = words;
  if (others.length > 0) throw usageError(`batch runs one file, and has ${words.length}`, HOW);
  if (id !== null) {
    if (file !== undefined)
      throw usageError('--resume goes on with a batch as it was submitted, and takes no file', HOW);
    return await resume(id, settings);
  }
  if (file === undefined) throw usageError('no batch file', HOW);
  if (settings.text('via') === 'slurm') return await beginOnSlurm(file, settings);
  if (settings.flag('detach'))
    throw usageError(
      '--detach leaves the jobs to a scheduler, and here ncclrun itself is that',
      'add --via slurm; or run it with nohup: what runs outlives its terminal',
    );
  return await begin(file, settings);
}

async function begin(file: string, settings: BatchSettings): Promise<number> {
  const spec = batchFile(file);
  if (settings.flag('check')) return await printChecked(file, spec);
  refuseGpuModels(spec);
  const request = allocationRequest(settings);
  const { hosts } = allocateHosts(request);
  const capacities = capacitiesOf(hosts);
  for (const job of spec.jobs) refuseMisfit(job, capacities);
  if (settings.flag('schedule')) {
    await streams.stdout.print(predictedSchedule(spec, capacities, Date.now(), streams.columns()));
    return 0;
  }
  const root = await rootOf();
  const directory = newBatchDirectory(root, spec.name, settings.text('batch-id'));
  writeHosts(directory, capacities);
  // Inside an allocation each launcher finds the hosts by itself, and how they are reached there.
  if (request.manager === null) writeFileSync(directory.hostfile, printHosts(hosts, 'openmpi').text, { mode: 0o600 });
  const store = openStore(directory);
  submitBatch(store, directory, spec, file);
  return await schedule(store, 1, directory, settings);
}

async function printChecked(file: string, { jobs }: BatchSpec): Promise<number> {
  const tasks = jobs.reduce((sum, { array }) => sum + (array?.tasks.length ?? 1), 0);
  await streams.stdout.print(
    `${file}: ${counted(jobs.length, 'job')}, ${counted(tasks, 'task')}: nothing is wrong with it\n`,
  );
  return 0;
}

async function beginOnSlurm(file: string, settings: BatchSettings): Promise<number> {
  const spec = batchFile(file);
  const slurm = await import('../batch/on-slurm.ts');
  if (settings.flag('schedule')) {
    const { text, notices } = await slurm.scriptsFor(spec, file, settings.text('batch-id'));
    for (const notice of notices) await say(notice);
    await streams.stdout.print(text);
    return 0;
  }
  refuseOnSlurm(spec, file);
  if (settings.flag('check')) return await printChecked(file, spec);
  const facts = await slurm.slurmFacts();
  const directory = newBatchDirectory(await rootOf(), spec.name, settings.text('batch-id'));
  return await endOnSlurm(
    directory,
    settings,
    await slurm.beginOnSlurm(spec, file, directory, facts, around(settings)),
  );
}

function around(settings: BatchSettings): SlurmSurroundings {
  return { say: (text) => void say(text), isQuiet: settings.flag('quiet'), detaches: settings.flag('detach') };
}

async function endOnSlurm(
  directory: BatchDirectory,
  settings: BatchSettings,
  { spec, status, isLeft }: SlurmEnd,
): Promise<number> {
  if (settings.flag('detach')) {
    await streams.stdout.print(settings.flag('batch-json') ? `${JSON.stringify(status)}\n` : `${directory.id}\n`);
    return 0;
  }
  if (isLeft)
    await say(`Slurm goes on with it: ncclrun jobs ${directory.id} shows it, ncclrun cancel ${directory.id} ends it`);
  return await end(directory, settings, spec, status, isLeft);
}

async function resume(id: string, settings: BatchSettings): Promise<number> {
  const directory = foundBatch(await rootOf(), id);
  const facts = readFacts(directory);
  if (facts !== null) {
    const { resumeOnSlurm } = await import('../batch/on-slurm.ts');
    return await endOnSlurm(directory, settings, await resumeOnSlurm(directory, facts, around(settings)));
  }
  const store = openStore(directory);
  if (store.batch === null) {
    store.close();
    throw usageError(`batch ${id} was never submitted: its scheduler ended before`, 'submit its file again');
  }
  return await schedule(store, store.resume(), directory, settings);
}

async function rootOf(): Promise<string> {
  const { path, notice } = stateRoot(process.env);
  if (notice !== null) await say(notice);
  return path;
}

async function schedule(
  store: Store,
  generation: number,
  directory: BatchDirectory,
  settings: BatchSettings,
): Promise<number> {
  const { spec } = store;
  const nameOf = (id: number) => taskName(store.spec, store.task(id));
  const session = new Session(store, generation, {
    directory,
    command: join(installationRoot, 'bin/ncclrun'),
    hosts: readHosts(directory),
    jobOf: submittedJob,
    emit: (event) => {
      const text = settings.flag('quiet') ? null : eventText(event, nameOf, Date.now());
      if (text !== null) void say(text);
    },
  });
  await say(`batch ${directory.id}: ${countsText(store.tasks)}`);
  const live = liveLine(store, settings);
  const signals = listen(session);
  await session.run();
  live?.end();
  const { interrupts } = signals;
  signals.close();
  const status = session.close();
  await session.gone;
  return await end(directory, settings, spec, status, interrupts > 0);
}

/** Says how the batch is left. Returns the exit status. */
async function end(
  directory: BatchDirectory,
  settings: BatchSettings,
  spec: BatchSpec,
  status: BatchStatus,
  isInterrupted: boolean,
): Promise<number> {
  await printEnd(status, settings.flag('batch-json'));
  const failed = status.tasks.find(({ state }) => state === 'failed' || state === 'timed-out' || state === 'lost');
  if (failed !== undefined)
    await say(`ncclrun logs ${directory.id}/${failed.name} prints what ${failed.name} has said`);
  if (status.endedAt === null) await say(`ncclrun batch --resume ${directory.id} goes on with it`);
  else if (spec.notify !== null) {
    const { notify } = await import('../batch/notify.ts');
    const problem = await notify(spec.notify, status);
    if (problem !== null) await say(problem);
  }
  if (isInterrupted) return INTERRUPTED;
  // What was skipped was not wanted, or stands beside what failed.
  return status.tasks.every(({ state }) => state === 'succeeded' || state === 'skipped') ? 0 : 1;
}

/** Null where nobody would see it. */
function liveLine(store: Store, settings: BatchSettings): Live | null {
  const shows = isTerminal(2) && process.env['TERM'] !== 'dumb' && !settings.flag('quiet');
  if (!shows) return null;
  const text = new ProgressLine({
    tasks: () => store.tasks,
    nameOf: (task) => taskName(store.spec, task),
    begunAt: Date.now(),
  });
  return new Live({
    text,
    stderr: streams.stderr,
    stdout: isTerminal(1) ? streams.stdout : null,
    columns: () => streams.columns(),
    mayDraw: () => isInForeground(),
    paint: () => makePaint(true, process.env),
  });
}

/** A terminal that closes does not end a batch. */
function onHangUp(): void {}

/** ^C once: no more tasks start; twice: those that run end; a third time: we leave, and they run on. SIGTERM is the first of these. */
function listen(session: Session): { readonly interrupts: number; close(): void } {
  let interrupts = 0;
  const onInterrupt = (): void => {
    interrupts += 1;
    if (interrupts === 1) session.stop('finish');
    else if (interrupts === 2) session.stop('cancel');
    else session.leave();
  };
  const onTerminate = (): void => session.stop('finish');
  process.on('SIGINT', onInterrupt).on('SIGTERM', onTerminate).on('SIGHUP', onHangUp);
  return {
    get interrupts() {
      return interrupts;
    },
    close: () => {
      process.off('SIGINT', onInterrupt).off('SIGTERM', onTerminate).off('SIGHUP', onHangUp);
    },
  };
}

async function printEnd(status: BatchStatus, json: boolean): Promise<void> {
  const others = status.tasks.filter(({ state }) => state !== 'succeeded');
  const shown = others.slice(0, MAX_ROWS);
  const more = others.length - shown.length;
  const rest = more === 0 ? '' : `and ${counted(more, 'other')}: ncclrun jobs ${status.id} lists all\n`;
  const text = json ? `${JSON.stringify(status)}\n` : `${batchText(status, Date.now(), shown)}${rest}`;
  await streams.stdout.print(text);
}

async function say(text: string): Promise<void> {
  const paint = makePaint(streams.stderrIsTerminal(), process.env);
  await streams.stderr.printPainted(ourLine(text, paint)).catch(() => {});
}
