/** `ncclrun doctor`: looks at hosts, and at the network between them, and says what is wrong and what to do. It changes nothing. */
import { readFileSync, writeFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import * as v from 'valibot';
import { messageOf } from '../../../control/message-of.ts';
import { hostReadings } from '../../../control/readings.ts';
import { TOGETHER_VARIABLE, togetherOrder, type TogetherOrder } from '../../../control/together.ts';
import { allocateHosts } from '../../allocation/allocate.ts';
import { allChecks } from '../../doctor/checks/all.ts';
import type { ReadHost } from '../../doctor/finding.ts';
import { isForTheWorse } from '../../doctor/compare.ts';
import { runChecks } from '../../doctor/run-checks.ts';
import { doctorPage, type Page } from '../../doctor/page.ts';
import { changesText, findingsText, summaryText } from '../../doctor/text.ts';
import { documentOf, statusOf, type Examined } from '../../doctor/verdict.ts';
import { installationRoot, installedVersion, localCounters, localReadings, localTogether } from '../../local/host.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { ourLine } from '../../report/summary.ts';
import { makePaint } from '../../text/colour.ts';
import { allocationRequest } from '../allocation-request.ts';
import { checkedWords } from '../checked-words.ts';
import { commandTable } from '../command-table.ts';
import { baselineOf, keep, sinceOf } from '../kept-runs.ts';
import { doctorJobs, type DoctorJobs } from '../doctor-jobs.ts';
import { examine, type Depth } from '../examine.ts';
import { jobRequest } from '../job-request.ts';
import { doctorCommandLine, type DoctorOptionName, type JobOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import { readingsOf, type AskedHost } from '../readings-of-hosts.ts';
import { slowStarters, withSecondStart } from '../reach-findings.ts';
import { reportRefusals } from '../report-refusals.ts';
import type { Settings } from '../settings.ts';

export { preflight } from '../preflight.ts';

type Names = DoctorOptionName | JobOptionName;

/** How long processors and memory are watched. */
const WATCH_MS = { quick: 500, usual: 2000 } as const;

/** Returns the exit status. Throws a FailureError (usage, hostfile). */
export async function doctor(argv: readonly string[]): Promise<number> {
  const { asked, settings, files, words } = readCommandLine<Names>(argv, doctorCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('doctor');
  if (asked === 'version') return (await import('./version.ts')).version();
  const streams = standardStreams();
  const what = settings.text('readings');
  if (what !== null) {
    await streams.stdout.print(`${JSON.stringify(await readHere(what, settings))}\n`);
    return 0;
  }
  await reportRefusals(files);
  checkedWords(words, commandTable.doctor);

  const baseline = baselineOf(settings);
  const started = performance.now();
  const found = await examined(settings);
  const seconds = (performance.now() - started) / 1000;
  const since = baseline === null ? null : sinceOf(baseline, found);
  const isWorse = since?.changes.some(isForTheWorse) === true;
  const warningsCount = settings.text('warnings') !== 'ok';
  const status = statusOf(found.findings, warningsCount) || (isWorse && warningsCount ? 1 : 0);
  const unkept = settings.list('from-readings').length === 0 ? keep(found, seconds, status) : [];
  const isFirst = baseline !== null && since === null;
  for (const line of [...(isFirst ? ['no earlier run on these hosts is kept to compare with'] : []), ...unkept])
    await streams.stderr.print(ourLine(line, makePaint(streams.stderrIsTerminal(), process.env)));
  const html = settings.text('html');
  if (html !== null) writePage(html, { found, seconds, since });
  if (settings.flag('json')) {
    const document = { ...documentOf(found, seconds, status), ...(since === null ? {} : { since }) };
    await streams.stdout.print(`${JSON.stringify(document)}\n`);
    return status;
  }
  const paint = makePaint(streams.stdoutIsTerminal(), process.env);
  await streams.stdout.printPainted(findingsText(found.findings, settings.flag('verbose'), paint));
  if (since !== null) await streams.stdout.printPainted(changesText(since.changes, since.takenAt, paint));
  await streams.stdout.print(summaryText(found.findings, found.hosts.length, seconds));
  return status;
}

/** Throws a FailureError (usage). */
function writePage(path: string, page: Page): void {
  try {
    const template = readFileSync(join(installationRoot, 'dist/bundle/doctor.html'), 'utf8');
    writeFileSync(path, doctorPage(template, page));
  } catch (error) {
    throw usageError(
      `--html ${path} cannot be written: ${messageOf(error)}`,
      'name a file in a directory you may write to',
    );
  }
}

/** Throws a FailureError (usage). */
function readHere(what: string, settings: Settings<Names>): Promise<object> {
  if (what === 'counters') return localCounters();
  if (what === 'together') return localTogether(orderHere());
  return localReadings(installedVersion(), watchMs(settings), dataOf(settings));
}

/** Throws a FailureError (usage). */
function orderHere(): TogetherOrder {
  try {
    return v.parse(togetherOrder, JSON.parse(process.env[TOGETHER_VARIABLE] ?? ''));
  } catch {
    const remedy = 'run ncclrun doctor -H HOST,HOST: it starts such processes by itself';
    throw usageError(`--readings=together needs an order in ${TOGETHER_VARIABLE}`, remedy);
  }
}

/** Of this host's working directory, but looked for on each host. */
function dataOf(settings: Settings<Names>): string | null {
  const path = settings.text('data');
  return path === null ? null : resolve(path);
}

function watchMs(settings: Settings<Names>): number {
  return settings.flag('quick') ? WATCH_MS.quick : WATCH_MS.usual;
}

async function examined(settings: Settings<Names>): Promise<Examined> {
  const recorded = settings.list('from-readings');
  if (recorded.length > 0) {
    const read = recorded.map(readRecorded);
    return {
      hosts: read.map(({ name }) => name),
      read,
      findings: runChecks(allChecks, read),
      ways: [],
      takenAt: Date.now(),
    };
  }
  const { hosts } = allocateHosts(allocationRequest(settings));
  const jobs = doctorJobs(jobRequest(settings, []));
  const data = dataOf(settings);
  const words = [...(settings.flag('quick') ? ['--quick'] : []), ...(data === null ? [] : ['--data', data])];
  const names = hosts.map(({ name }) => name);
  return await examine(jobs, await readingsWithSecondStart(jobs, names, words), depthOf(settings));
}

function depthOf(settings: Settings<Names>): Depth {
  if (settings.flag('passive')) return 'passive';
  if (settings.flag('full')) return 'full';
  return settings.flag('quick') ? 'quick' : 'usual';
}

/** A host that started slowly is started once more: it, its network or we may have been busy for a moment. */
async function readingsWithSecondStart(
  jobs: DoctorJobs,
  hosts: readonly string[],
  words: readonly string[],
): Promise<AskedHost[]> {
  const asked = await readingsOf(jobs, hosts, words);
  const again = await readingsOf(jobs, slowStarters(asked), ['--quick']);
  return withSecondStart(asked, again);
}

/** Throws a FailureError (usage). */
function readRecorded(path: string): ReadHost {
  const remedy = 'name files that ncclrun doctor --readings has written';
  let text: string;
  try {
    text = readFileSync(path === '-' ? 0 : path, 'utf8');
  } catch (error) {
    throw usageError(`--from ${path} cannot be read: ${messageOf(error)}`, remedy);
  }
  try {
    const readings = v.parse(hostReadings, JSON.parse(text));
    return { name: basename(path).replace(/\.json$/u, ''), readings };
  } catch (error) {
    throw usageError(`--from ${path} has no readings: ${messageOf(error)}`, remedy);
  }
}
