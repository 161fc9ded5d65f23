/**
 * Finds who keeps a job waiting, over all its communicators at once. Ranks that wait point at others until the chain ends: with ranks that wait
 * for nobody (they are to blame), with a cycle over several communicators (a deadlock), or inside one operation (a connection carries nothing).
 */
import { counted } from '../text/counted.ts';
import type { Hang } from '../model/hang.ts';
import { COMPUTES, MAX_NAMED, complaints, culprit } from './culprit.ts';
import type { Culprit } from './culprit.ts';
import { waitsIn, worstPlace } from './finding.ts';
import type { Finding } from './finding.ts';
import { blockedSentence, blockedSentences, commonHost } from './blocked.ts';
import type { BlockedEdge } from './blocked.ts';
import { cycleIn, endsOf, hasCycleIn, reachableFrom, waitGraph } from './graph.ts';
import type { WaitGraph } from './graph.ts';
import { differenceFinding } from './difference.ts';
import { deadlockFinding } from './deadlock.ts';
import { mergeAlike } from './merge.ts';
import { jobTable, missingFrom } from './table.ts';
import type { CommTable, JobTable, Place, Reading } from './table.ts';
import { hangOf } from './verdict.ts';

/** Few ranks that are ahead are to blame if they are at most this part of the communicator. */
const MINORITY = 0.25;
/** Of one job at a time. */
const MAX_VERDICTS = 8;

/** Two readings, some time apart. No verdict: no rank hangs, or those that did have moved on. */
export function judgeHangs(first: Reading, second: Reading): Hang[] {
  const table = jobTable(first, second);
  const hanging = table.comms.filter(({ places }) => places.some((place) => place.waits && place.hangs));
  if (hanging.length === 0) return [];
  const graph = waitGraph(table);
  const findings = mergeAlike(new Judge(table, graph, hanging).findings());
  return findings.slice(0, MAX_VERDICTS).map((finding) => hangOf(finding, table, graph));
}

/** Whose processes the agents are to look at, by one reading. */
export function blamedRanks(reading: Reading): number[] {
  const table = jobTable(reading, reading);
  const hanging = table.comms.filter(({ places }) => places.some((place) => place.waits && place.hangs));
  if (hanging.length === 0) return [];
  const findings = new Judge(table, waitGraph(table), hanging).findings();
  return [...new Set(findings.flatMap(({ culprits }) => culprits.map(({ member }) => member.jobRank)))];
}

class Judge {
  readonly #table: JobTable;
  readonly #graph: WaitGraph;
  readonly #hanging: readonly CommTable[];
  /** Who waits, by the node that they wait for. */
  readonly #waiters: readonly Place[][];
  readonly #findings = new Map<CommTable, Finding>();
  readonly #deadlocks: Finding[] = [];

  constructor(table: JobTable, graph: WaitGraph, hanging: readonly CommTable[]) {
    this.#table = table;
    this.#graph = graph;
    this.#hanging = hanging;
    this.#waiters = waitersOf(graph);
  }

  findings(): Finding[] {
    for (const comm of this.#hanging) {
      const place = worstPlace(comm);
      const finding = place === null ? null : differenceFinding(comm, place, this.#graph);
      if (finding !== null) this.#findings.set(comm, finding);
    }
    const starts = this.#hanging.flatMap(({ places }) => places.filter(({ waits, hangs }) => waits && hangs));
    const within = reachableFrom(this.#graph.edges, this.#nodes(starts));
    const stuck: [comm: CommTable, nodes: number[]][] = [];
    for (const end of endsOf(this.#graph, within)) {
      const comm = this.#blame(end);
      if (comm !== null) stuck.push([comm, end]);
    }
    for (const [comm, nodes] of stuck)
      if (!this.#findings.has(comm)) this.#findings.set(comm, this.#outsiders(comm) ?? this.#stuck(comm, nodes));
    return [...this.#findings.values(), ...this.#deadlocks].filter((finding) => finding.place.waits);
  }

  /** The communicator that is stuck inside, if the end is none to blame. */
  #blame(end: readonly number[]): CommTable | null {
    const nodes = end.map((node) => this.#graph.nodes[node]);
    const members = nodes.flatMap((node) => (node?.kind === 'rank' ? [node.member] : []));
    const [member] = members;
    const [node] = nodes;
    if (member === undefined) {
      if (node?.kind === 'missing') this.#missing(node.comm, end);
      if (node?.kind !== 'inside') return null;
      const latest = Math.max(...node.comm.places.map(({ waits, operation }) => (waits ? operation : 0)));
      if (latest <= node.operation) return node.comm;
      if (!this.#findings.has(node.comm)) this.#findings.set(node.comm, this.#late(node.comm, latest));
      return null;
    }
    if (members.length > 1) return this.#cycle(end);
    const waiters = end.flatMap((one) => this.#waiters[one] ?? []).filter((place) => place.member !== member);
    const waiter = longest(waiters) ?? longest(member.places.filter((place) => place.waits));
    if (waiter === null) return null;
    const { comm, operation } = waiter;
    const place = lowest(comm.places.filter((one) => one.member === member));
    if (place === null || this.#findings.has(comm)) return null;
    const isBehind = place.operation < operation || (place.inside && !place.waits);
    if (!member.isFrozen && !isBehind) return comm;
    this.#findings.set(comm, this.#late(comm, operation));
    return null;
  }

  /** All ranks that keep an operation waiting and wait for nobody. */
  #late(comm: CommTable, operation: number): Finding {
    const suspects = comm.places.filter(
      (place) =>
        (place.operation < operation && !this.#waitsElsewhere(place)) ||
        (place.member.isFrozen && (place.inside || place.operation < operation)) ||
        (place.operation === operation && place.inside && !place.waits),
    );
    // Beside one that cannot go on, those that have just come are not to blame.
    const hasFrozen = suspects.some(({ member }) => member.isFrozen);
    const behind = suspects.filter(({ member, inside }) => !hasFrozen || member.isFrozen || !inside);
    const ahead = this.#ahead(comm, operation, behind);
    const culprits = ahead ?? behind.map((place) => culprit(place, operation));
    const place = worstPlace(comm, operation) ?? worstPlace(comm);
    const kind = ahead === null ? kindOf(culprits) : 'extra-call';
    const silent = missingFrom(comm) === 0 ? [] : missingSentences(comm, this.#table);
    return {
      kind,
      confidence:
        kind === 'stopped' || kind === 'rank-dead' ? 'certain' : kind === 'extra-call' ? 'suspected' : 'likely',
      place: place ?? culprits[0]?.place ?? raise(comm),
      culprits,
      late: [...complaints(culprits), ...silent],
      waits: waitsIn(comm),
      evidence: [],
      ends: this.#nodes(ahead === null ? culprits.map(({ place }) => place) : behind),
    };
  }

  /**
   * Where kernels wait, a rank may have queued the operation and not be in it: its stream has other work, or its graph, which repeats the operation
   * under one number, was not launched. It keeps the others waiting, unless they say for whom they wait.
   */
  #outsiders(comm: CommTable): Finding | null {
    const outside = comm.places.filter((place) => !place.inside);
    const place = worstPlace(comm);
    const isKnown = comm.places.some(({ waits, waitsFor }) => waits && waitsFor !== null);
    if (
      place === null ||
      outside.length === 0 ||
      isKnown ||
      !comm.places.some(({ waits, byKernel }) => waits && byKernel)
    )
      return null;
    const ahead = this.#ahead(comm, place.operation, outside);
    const culprits = ahead ?? outside.map((one) => culprit(one, place.operation));
    const kind = ahead === null ? kindOf(culprits) : 'extra-call';
    return {
      kind,
      confidence: kind === 'stopped' || kind === 'rank-dead' ? 'certain' : 'suspected',
      place,
      culprits,
      late: complaints(culprits),
      waits: [],
      evidence: [],
      ends: this.#nodes(outside),
    };
  }

  /** Few ranks in an operation that all others have not begun and are not about to: they sleep outside of all operations. */
  #ahead(comm: CommTable, operation: number, behind: readonly Place[]): Culprit[] | null {
    const ahead = comm.places.filter((place) => place.waits && place.operation === operation);
    const others = comm.places.length - ahead.length;
    const isFew = ahead.length <= MAX_NAMED && ahead.length <= comm.size * MINORITY;
    if (!isFew || missingFrom(comm) > 0 || behind.length !== others) return null;
    const [first] = behind;
    const areIdle = behind.every(({ member, inside, operation: number }) => {
      const idle = !member.isFrozen && (member.cpuShare ?? 1) < COMPUTES && member.heldUp === 0;
      return idle && !inside && number === first?.operation && member.places.every((place) => !place.inside);
    });
    if (!areIdle) return null;
    return ahead.map((place) => {
      const call = `begun operation ${operation} (${place.collective}), which none of the ${others} other ranks has`;
      const rest = `${call}, and they are idle`;
      return {
        member: place.member,
        place,
        kind: 'extra-call',
        where: 'inside',
        one: `has ${rest}`,
        many: `have ${rest}`,
      };
    });
  }

  #missing(comm: CommTable, ends: readonly number[]): void {
    const place = worstPlace(comm);
    if (place === null || this.#findings.has(comm)) return;
    const { silent, omitted } = this.#table;
    const kind = silent.length > 0 ? 'host-silent' : omitted > 0 ? 'unknown' : 'left';
    const late = missingSentences(comm, this.#table);
    const evidence = silent.map((host) => ({ kind: 'silent', host, subject: host, value: 'no answer', unit: null }));
    this.#findings.set(comm, {
      kind,
      confidence: kind === 'unknown' ? 'suspected' : 'likely',
      place,
      culprits: [],
      late,
      waits: [],
      evidence,
      ends,
    });
  }

  #cycle(end: readonly number[]): CommTable | null {
    const within = new Set(end);
    const places = end.flatMap((node) => this.#graph.edges[node] ?? []).flatMap(({ place }) => place ?? []);
    const comms = new Set(places.map(({ comm }) => comm));
    for (const comm of comms) {
      const own = places.filter((place) => place.comm === comm);
      const isCollective = own.some(({ collective }) => collective !== 'sendRecv');
      if (isCollective && hasCycleIn(this.#graph, within, comm)) return comm;
    }
    this.#deadlocks.push(deadlockFinding(this.#graph, cycleIn(this.#graph, end)));
    return null;
  }

  /** All ranks are inside, and none makes progress: the connections that wait are all that is known. */
  #stuck(comm: CommTable, ends: readonly number[]): Finding {
    const blocked = this.#table.blocked.filter((edge) => edge.comm === `${comm.id}:${comm.epoch}`);
    const [waits, connections] =
      blocked.length > 0 ? [blockedSentences(blocked), blocked.map(blockedSentence)] : [waitsIn(comm), waitsIn(comm)];
    const { silent } = this.#table;
    const missing = missingSentences(comm, this.#table);
    const ruledOut = [
      'no rank is behind',
      'no rank is stopped',
      'the ranks’ calls agree as far as they are remembered',
      ...(silent.length === 0 ? ['all hosts answer'] : []),
    ];
    const isKnown = waits.length > 0;
    return {
      kind: isKnown ? 'stuck-inside' : 'unknown',
      confidence: isKnown ? 'likely' : 'suspected',
      place: worstPlace(comm) ?? raise(comm),
      culprits: endsOfBlocked(comm, blocked) ?? stoppedFirst(comm),
      late: missing,
      waits,
      evidence: isKnown
        ? connections
            .slice(0, MAX_NAMED)
            .map((value) => ({ kind: 'connection', host: null, subject: comm.id, value, unit: null }))
        : ruledOut.map((value) => ({ kind: 'ruled-out', host: null, subject: comm.id, value, unit: null })),
      ends,
    };
  }

  /** It waits, and not only inside of an operation of the same communicator that all have begun. */
  #waitsElsewhere({ comm, member }: Place): boolean {
    const edges = this.#graph.edges[this.#graph.nodeOf.get(member.jobRank) ?? -1] ?? [];
    return edges.some(({ to }) => {
      const node = this.#graph.nodes[to];
      return node?.kind !== 'inside' || node.comm !== comm;
    });
  }

  #nodes(places: readonly Place[]): number[] {
    return places.flatMap(({ member }) => this.#graph.nodeOf.get(member.jobRank) ?? []);
  }
}

function missingSentences(comm: CommTable, { silent, omitted }: JobTable): string[] {
  if (silent.length > 0) return silent.map((host) => `${host} does not say where its ranks are`);
  const missing = missingFrom(comm);
  if (missing === 0) return [];
  return omitted > 0
    ? [`the positions of ${counted(missing, 'rank')} are not known`]
    : [`${missing} of its ranks ${missing === 1 ? 'has' : 'have'} left it`];
}

/** The gravest: a stopped rank explains more than one that sleeps. */
function kindOf(culprits: readonly Culprit[]): Finding['kind'] {
  const order = ['rank-dead', 'stopped', 'stuck-outside', 'late'] as const;
  return order.find((kind) => culprits.some((one) => one.kind === kind)) ?? 'late';
}

/** Who waits for each node, directly or by way of a group. */
function waitersOf({ nodes, edges }: WaitGraph): Place[][] {
  const waiters: Place[][] = nodes.map(() => []);
  for (const out of edges) for (const { to, place } of out) if (place !== null) waiters[to]?.push(place);
  for (const [node, { kind }] of nodes.entries()) {
    const worst = kind === 'group' ? longest(waiters[node] ?? []) : null;
    if (worst !== null) for (const { to } of edges[node] ?? []) waiters[to]?.push(worst);
  }
  return waiters;
}

/** The ranks of the host that all blocked connections have in common, else the sender of the one that is blocked longest. */
function endsOfBlocked(comm: CommTable, blocked: readonly BlockedEdge[]): Culprit[] | null {
  const [longestBlocked] = blocked;
  if (longestBlocked === undefined) return null;
  const host = blocked.length > 1 ? commonHost(blocked) : null;
  const ends = blocked.flatMap(({ from, to }) => [from, to]).filter((end) => end.host === host);
  const blamed = new Set(host === null ? [longestBlocked.from.rank] : ends.map(({ rank }) => rank));
  const places = comm.places.filter(({ jobRank }) => blamed.has(jobRank));
  return places.length === 0 ? null : places.map(insideCulprit);
}

function insideCulprit(place: Place): Culprit {
  return { member: place.member, place, kind: 'stuck-inside', where: 'inside', one: '', many: '' };
}

/** Nothing has come from this rank for longest; what waits behind it has waited for less. */
function stoppedFirst({ places, byRank }: CommTable): Culprit[] {
  const first = longest(places.filter(({ waits, waitsFor }) => waits && waitsFor !== null));
  const place = byRank.get(first?.waitsFor?.rank ?? -1);
  return place === undefined ? [] : [insideCulprit(place)];
}

function longest(places: readonly Place[]): Place | null {
  return places.reduce<Place | null>(
    (worst, place) => (place.waitedMs > (worst?.waitedMs ?? -1) ? place : worst),
    null,
  );
}

function lowest(places: readonly Place[]): Place | null {
  return places.reduce<Place | null>(
    (low, place) => (low === null || place.operation < low.operation ? place : low),
    null,
  );
}

/** A communicator that hangs has a rank that waits. */
function raise({ id }: CommTable): never {
  throw new Error(`communicator ${id} has no rank that waits`);
}
