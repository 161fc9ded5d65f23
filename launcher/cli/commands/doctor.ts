/** `ncclrun doctor`: looks at hosts, and at the network between them, and says what is wrong and what to do. It changes nothing. */
import { readFileSync } from 'node:fs';
import { basename } from 'node:path';
import * as v from 'valibot';
import { messageOf } from '../../../control/message-of.ts';
import { hostReadings } from '../../../control/readings.ts';
import { allocateHosts } from '../../allocation/allocate.ts';
import { allChecks } from '../../doctor/checks/all.ts';
import type { ReadHost } from '../../doctor/finding.ts';
import { growthFindings } from '../../doctor/growth.ts';
import { pairFindings } from '../../doctor/pairs.ts';
import { runChecks } from '../../doctor/run-checks.ts';
import { findingsText, summaryText } from '../../doctor/text.ts';
import { documentOf, statusOf, type Examined } from '../../doctor/verdict.ts';
import { installedVersion, localReadings } from '../../local/host.ts';
import type { HostSlots } from '../../model/types.ts';
import { usageError } from '../../model/usage-error.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { makePaint } from '../../text/colour.ts';
import { allocationRequest } from '../allocation-request.ts';
import { checkedWords } from '../checked-words.ts';
import { commandTable } from '../command-table.ts';
import { measuredWays } from '../measured-pairs.ts';
import { doctorCommandLine, type DoctorOptionName, type JobOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import { readingsOf, type AskedHost } from '../readings-of-hosts.ts';
import { reachFindings, slowStarters, withSecondStart } from '../reach-findings.ts';
import { reportRefusals } from '../report-refusals.ts';
import type { Settings } from '../settings.ts';

type Names = DoctorOptionName | JobOptionName;

/** How long processors and memory are watched. */
const WATCH_MS = { quick: 500, usual: 2000 } as const;

/** Returns the exit status. Throws a FailureError (usage, hostfile). */
export async function doctor(argv: readonly string[]): Promise<number> {
  const { asked, settings, files, words } = readCommandLine<Names>(argv, doctorCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('doctor');
  if (asked === 'version') return (await import('./version.ts')).version();
  const streams = standardStreams();
  if (settings.flag('readings')) {
    await streams.stdout.print(`${JSON.stringify(await localReadings(installedVersion(), watchMs(settings)))}\n`);
    return 0;
  }
  await reportRefusals(files);
  checkedWords(words, commandTable.doctor);

  const started = performance.now();
  const found = await examined(settings);
  const { findings, hosts } = found;
  const seconds = (performance.now() - started) / 1000;
  const status = statusOf(findings, settings.text('warnings') !== 'ok');
  if (settings.flag('json')) {
    await streams.stdout.print(`${JSON.stringify(documentOf(found, seconds, status))}\n`);
    return status;
  }
  const paint = makePaint(streams.stdoutIsTerminal(), process.env);
  await streams.stdout.printPainted(findingsText(findings, settings.flag('verbose'), paint));
  await streams.stdout.print(summaryText(findings, hosts.length, seconds));
  return status;
}

function watchMs(settings: Settings<Names>): number {
  return settings.flag('quick') ? WATCH_MS.quick : WATCH_MS.usual;
}

async function examined(settings: Settings<Names>): Promise<Examined> {
  const recorded = settings.list('from-readings');
  if (recorded.length > 0) {
    const hosts = recorded.map(readRecorded);
    return { findings: runChecks(allChecks, hosts), hosts: hosts.map(({ name }) => name), ways: [] };
  }
  const { hosts } = allocateHosts(allocationRequest(settings));
  const quick = settings.flag('quick') ? ['--quick'] : [];
  const asked = await readingsWithSecondStart(settings, hosts, quick);
  const read = asked.flatMap((one) => one.read ?? []);
  const findings = [...reachFindings(asked), ...runChecks(allChecks, read)];
  const none = { findings: [], ways: [] };
  const underLoad = settings.flag('passive') ? none : await loaded(settings, hosts, read);
  return {
    findings: [...findings, ...underLoad.findings],
    hosts: hosts.map(({ name }) => name),
    ways: underLoad.ways,
  };
}

/** A host that started slowly is started once more: it, its network or we may have been busy for a moment. */
async function readingsWithSecondStart(
  settings: Settings<Names>,
  hosts: readonly HostSlots[],
  words: readonly string[],
): Promise<AskedHost[]> {
  const asked = await readingsOf(hosts, { settings, words });
  const slow = slowStarters(asked);
  const again = await readingsOf(
    hosts.filter(({ name }) => slow.includes(name)),
    { settings, words: ['--quick'] },
  );
  return withSecondStart(asked, again);
}

/** Between the hosts that were reached. */
async function loaded(
  settings: Settings<Names>,
  all: readonly HostSlots[],
  read: readonly ReadHost[],
): Promise<Pick<Examined, 'findings' | 'ways'>> {
  const hosts = all.filter(({ name }) => read.some((one) => one.name === name));
  if (hosts.length < 2) return { findings: [], ways: [] };
  const ways = await measuredWays(
    settings,
    hosts.map(({ name }) => name),
  );
  const after = await readingsOf(hosts, { settings, words: ['--quick'] });
  const readAfter = after.flatMap((one) => one.read ?? []);
  return { findings: [...pairFindings(ways), ...growthFindings(read, readAfter)], ways };
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
