/** `ncclrun hosts [FILE|LIST]`: prints the hosts that a run would use, or writes them as another tool reads them. */
import { existsSync, statSync } from 'node:fs';
import type { Hosts } from '../../allocation/slots/add-up.ts';
import { allocateHosts, type AllocationRequest } from '../../allocation/allocate.ts';
import { printHosts } from '../../allocation/print/grammars.ts';
import { grammarNames, type GrammarName } from '../../allocation/print/grammar-names.ts';
import type { HostSlots } from '../../model/types.ts';
import { makePaint } from '../../text/colour.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { ourLine } from '../../report/summary.ts';
import { allocationRequest } from '../allocation-request.ts';
import { hostsTable } from '../hosts-table.ts';
import { hostsCommandLine, type HostsOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import type { Settings } from '../settings.ts';
import { reportRefusals } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';

/** Returns the exit status. Throws a FailureError (usage, hostfile). */
export async function hosts(argv: readonly string[]): Promise<number> {
  const { asked, settings, files, words } = readCommandLine<HostsOptionName>(argv, hostsCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('hosts');
  if (asked === 'version') return (await import('./version.ts')).version();
  await reportRefusals(files);

  const found = withSlots(allocateHosts(requestOf(settings, words)), settings.integer('slots'));
  const streams = standardStreams();
  const { text, lost } = written(found, settings);
  const paint = makePaint(streams.stderrIsTerminal(), process.env);
  for (const sentence of lost) await streams.stderr.printPainted(ourLine(sentence, paint));
  await streams.stdout.print(text);
  return 0;
}

/** `ncclrun --explain` without a program: the hosts alone. Throws a FailureError (usage, hostfile). */
export async function explainHosts(request: AllocationRequest, json: boolean): Promise<number> {
  const found = allocateHosts(request);
  const text = json ? printHosts(found.hosts, 'json').text : hostsTable(found);
  await standardStreams().stdout.print(text);
  return 0;
}

function written(found: Hosts, settings: Settings<HostsOptionName>): { text: string; lost: readonly string[] } {
  const count = settings.text('count');
  if (count === 'hosts') return { text: `${found.hosts.length}\n`, lost: [] };
  if (count === 'slots') return slotCount(found.hosts);
  const grammar = grammarOf(settings);
  return grammar === null ? { text: hostsTable(found), lost: [] } : printHosts(found.hosts, grammar);
}

function grammarOf(settings: Settings<HostsOptionName>): GrammarName | null {
  const asked = settings.text('to');
  if (asked !== null) return grammarNames.find((name) => name === asked) ?? null;
  return settings.flag('json') ? 'json' : null;
}

function slotCount(hosts: readonly HostSlots[]): { text: string; lost: readonly string[] } {
  const uncounted = hosts.filter(({ slots }) => slots === null).length;
  const sum = hosts.reduce((total, { slots }) => total + (slots ?? 0), 0);
  const lost = `without those of ${uncounted === 1 ? '1 host that states' : `${uncounted} hosts that state`} none (--slots N gives a number)`;
  return { text: `${sum}\n`, lost: uncounted === 0 ? [] : [lost] };
}

function withSlots({ hosts, leftOut }: Hosts, slots: number | null): Hosts {
  if (slots === null) return { hosts, leftOut };
  const origin = { kind: 'stated', text: `${slots} by --slots` } as const;
  return {
    hosts: hosts.map((host) => {
      return host.slots === null ? { ...host, slots, origin: { ...origin, host: host.origin.host } } : host;
    }),
    leftOut,
  };
}

/** The word defines the hosts: it overrides variables and files, but not options of the command line. */
function requestOf(settings: Settings<HostsOptionName>, words: readonly string[]): AllocationRequest {
  const request = allocationRequest(settings);
  const [word, extra] = words;
  if (word === undefined) return request;
  if (extra !== undefined) {
    throw usageError(
      `"${extra}" after "${word}" is one too many`,
      'one file or list; separate hosts with commas: a:4,b:4',
    );
  }
  const given = (name: HostsOptionName) => settings.setting(name)?.source.startsWith('-') ?? false;
  if (isFile(word)) {
    if (given('hostfile')) throw usageError(`two hostfiles: ${word} and ${request.hostfile}`, 'name one of them');
    return { ...request, manager: null, hostfile: word, hostList: given('host') ? request.hostList : null };
  }
  if (given('host')) throw usageError(`two lists: ${word} and ${request.hostList}`, 'name one of them');
  return { ...request, manager: null, hostfile: given('hostfile') ? request.hostfile : null, hostList: word };
}

/** A bare word is a file: taken for a host, a file's mistyped name would look like an answer. */
function isFile(word: string): boolean {
  if (word === '-' || (existsSync(word) && !statSync(word).isDirectory())) return true;
  if (/[,:[@+^]/u.test(word) && !/^[./]/u.test(word)) return false;
  const remedy = word.includes('/') ? 'check the name' : `for a host of that name write: ncclrun hosts -H ${word}`;
  throw usageError(`there is no hostfile ${word}`, remedy);
}
