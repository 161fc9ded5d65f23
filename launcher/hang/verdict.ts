/** Puts a finding into the verdict of events, results and texts. */
import type { Hang, RankClass, RankWhere, Verdict, VerdictKind, VerdictOperation } from '../model/hang.ts';
import { blamedOf, evidenceOf, rankRanges } from './culprit.ts';
import { stepsOf } from './deadlock.ts';
import type { Finding } from './finding.ts';
import { pathTo, reachableFrom, turned } from './graph.ts';
import type { WaitGraph } from './graph.ts';
import type { JobTable, Member, Place } from './table.ts';

/** Of the ranks that wait, so many say for whom. */
const MAX_WAITS = 4;
const MAX_CHAIN = 16;
const MAX_CLASSES = 32;
const MAX_EVIDENCE = 32;

const NO_CALL = { count: null, type: null, operator: null, root: null };

export const REMEDY: Readonly<Record<VerdictKind, string>> = {
  late: 'see what that rank does; raise --hang-after if operations may take so long',
  stopped: 'continue it with SIGCONT, detach its debugger, or thaw its control group',
  'stuck-outside': 'see what that rank does; raise --hang-after if operations may take so long',
  'stuck-inside': 'check the network between those hosts (ncclrun perf --net)',
  deadlock: 'let all ranks call the operations of their communicators in the same order',
  'extra-call': 'see why that rank calls the operation and the others do not, or why they are late',
  'mismatch-order': 'let all ranks of a communicator call the same collectives in the same order',
  'mismatch-type': 'let all ranks give the same element type and operator',
  'mismatch-size': 'let all ranks give the same count',
  'mismatch-root': 'let all ranks give the same root',
  'rank-dead': 'see why that process has ended',
  'host-silent': 'see whether that host is overloaded or cut off',
  left: 'see why those ranks have left the communicator',
  'init-missing': 'see why those ranks do not join the communicator',
  'straggler-compute': 'see what slows that rank down: its clocks, its CPU time, the work that it is given',
  'straggler-host': 'see what slows that host down, or leave it out (--exclude)',
  'slow-link': 'check the path between those two (ncclrun perf --net)',
  'slow-nic': 'check that NIC, its cable and its port',
  unknown: 'look at the stacks of the waiting ranks with a debugger',
};

export function hangOf(finding: Finding, table: JobTable, graph: WaitGraph): Hang {
  const { kind, confidence, place, culprits, late } = finding;
  const { comm, operation, collective, bytes } = place;
  const inside = comm.places.filter((one) => one.waits && one.operation === operation);
  const call = collective === 'barrier' ? 'a barrier' : `${collective} of ${bytes} bytes`;
  const waiting = rankRanges(inside.map(({ jobRank }) => jobRank));
  const seconds = tenths(Math.max(...inside.map(({ waitedMs }) => waitedMs), place.waitedMs));
  const consequences = consequencesOf(finding, table, graph);
  const flat = { communicator: comm.id, operation, call, late, waits: finding.waits, waiting, seconds };
  const verdict: Verdict = {
    schemaVersion: 1,
    kind,
    confidence,
    seconds,
    communicator: { id: comm.id, epoch: comm.epoch, size: comm.size },
    operation: finding.operation ?? operationAt(place),
    blamed: blamedOf(culprits),
    waiting: { ranks: waiting, count: inside.length, longestSeconds: seconds },
    chain: chainOf(finding, graph),
    classes: classesOf(table),
    evidence: [...culprits.slice(0, MAX_EVIDENCE).flatMap(evidenceOf), ...finding.evidence].slice(0, MAX_EVIDENCE),
    stacks: [],
    consequences,
    remedy: REMEDY[kind],
    message: messageOf(flat, kind, consequences),
  };
  return { ...flat, verdict };
}

/** The operation that a rank has begun last in a communicator, with its arguments where they are known. */
export function operationAt({ operation: number, collective, bytes, calls }: Place): VerdictOperation {
  const { count, type, operator, root } = (calls?.call?.collective === collective ? calls.call : null) ?? NO_CALL;
  return { number, collective, bytes, count, type, operator, root };
}

type Flat = Omit<Hang, 'verdict'>;

/** The ranks to blame come first. */
function messageOf(
  { communicator, operation, call, late, waits, waiting, seconds }: Flat,
  kind: VerdictKind,
  consequences: number,
): string {
  const who = waiting.includes(',') || waiting.includes('-') ? `ranks ${waiting} wait` : `rank ${waiting} waits`;
  const blame = late.length > 0 ? late.join('; ') : 'no rank is behind, and none makes progress';
  const where = `${who} in operation ${operation} (${call}) of communicator ${communicator}, without progress for ${seconds} s`;
  const others = consequences === 1 ? '1 more communicator waits' : `${consequences} more communicators wait`;
  const because = consequences === 0 ? '' : `; and ${others} because of it`;
  const isInside = kind === 'stuck-inside' || kind === 'unknown';
  if (!isInside || waits.length === 0) return `${blame}: ${where}${because}`;
  const more = waits.length > MAX_WAITS ? `; and ${waits.length - MAX_WAITS} more` : '';
  return `${blame}: ${where}: ${waits.slice(0, MAX_WAITS).join('; ')}${more}${because}`;
}

/** Other communicators in which ranks hang that wait for the end of this finding. */
function consequencesOf({ ends, place: { comm } }: Finding, { comms }: JobTable, graph: WaitGraph): number {
  const waiting = reachableFrom(turned(graph), ends);
  const isBehind = ({ waits, hangs, jobRank }: Place): boolean =>
    waits && hangs && waiting.has(graph.nodeOf.get(jobRank) ?? -1);
  return comms.filter((other) => other !== comm && other.places.some(isBehind)).length;
}

function chainOf({ kind, ends, place }: Finding, graph: WaitGraph): Verdict['chain'] {
  const start = graph.nodeOf.get(place.jobRank);
  const [end] = ends;
  if (start === undefined || end === undefined) return [];
  const isCycle = kind === 'deadlock';
  const way = isCycle ? ends : pathTo(graph, [start], end, reachableFrom(graph.edges, [start]));
  return stepsOf(graph, way, isCycle)
    .slice(0, MAX_CHAIN)
    .map((step) => ({ from: step.place.jobRank, to: step.next.jobRank, communicator: step.place.comm.id }));
}

function classesOf({ members }: JobTable): RankClass[] {
  const classes = new Map<
    string,
    { readonly members: Member[]; readonly where: RankWhere; readonly place: Place | null }
  >();
  for (const member of members) {
    const place = member.places.find((one) => one.waits) ?? member.places.find((one) => one.inside) ?? null;
    const where = whereOf(member, place);
    const name = `${where}:${place?.comm.id ?? ''}:${place?.comm.epoch ?? ''}:${place?.operation ?? ''}`;
    const known = classes.get(name) ?? { members: [], where, place };
    classes.set(name, known);
    known.members.push(member);
  }
  const largest = [...classes.values()].toSorted((one, other) => other.members.length - one.members.length);
  return largest.slice(0, MAX_CLASSES).map(({ members: alike, where, place }) => ({
    ranks: rankRanges(alike.map(({ jobRank }) => jobRank)),
    count: alike.length,
    where,
    communicator: place?.comm.id ?? null,
    operation: place === null ? null : { number: place.operation, collective: place.collective },
  }));
}

function whereOf({ isFrozen, state }: Member, place: Place | null): RankWhere {
  if (!isFrozen) return place === null ? 'outside' : 'inside';
  if (state === 'stopped' || state === 'uninterruptible') return state;
  if (state === 'frozen') return 'stopped';
  return 'dead';
}

function tenths(ms: number): number {
  return Math.round(ms / 100) / 10;
}
