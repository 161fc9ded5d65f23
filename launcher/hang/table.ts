/** The positions of all ranks of a job in all their communicators, read twice. A rank that moved in between waits for nobody. */
import type { HostRankPositions, RankPosition, RankProcess } from '../../control/messages/hang.ts';
import { blockedEdges } from './blocked.ts';
import type { BlockedEdge } from './blocked.ts';

/** What the agents have answered to one query. */
export interface Reading {
  readonly answers: ReadonlyMap<string, HostRankPositions>;
  readonly asked: readonly string[];
}

export interface CommTable {
  readonly id: string;
  readonly epoch: number;
  readonly size: number;
  readonly places: Place[];
  readonly byRank: Map<number, Place>;
}

/** Position of one rank in one communicator. */
export interface Place extends RankPosition {
  readonly comm: CommTable;
  readonly member: Member;
  /** It is inside an operation, and was there without progress at both readings. */
  readonly waits: boolean;
  /** It made progress between the readings. */
  readonly moved: boolean;
}

/** One rank of the job. */
export interface Member extends RankProcess {
  readonly host: string;
  /** Part of one CPU that its process used between the readings; null if nobody knows. */
  readonly cpuShare: number | null;
  /** How often its cgroup's limit held it up between the readings. */
  readonly heldUp: number;
  /** Its process was in a state at both readings in which it cannot go on. */
  readonly isFrozen: boolean;
  readonly places: Place[];
}

export interface JobTable {
  readonly comms: readonly CommTable[];
  readonly members: readonly Member[];
  readonly blocked: readonly BlockedEdge[];
  /** Hosts that have not answered. */
  readonly silent: readonly string[];
  /** Positions are missing for want of room in an answer. */
  readonly omitted: number;
}

/** Not `gone`: a rank in a pid namespace of its own has another pid for its agent, and the guardian reports ranks that end. */
const FROZEN: ReadonlySet<string> = new Set(['stopped', 'frozen', 'zombie', 'uninterruptible']);

export function jobTable(first: Reading, second: Reading): JobTable {
  const before = firstPlaces(first);
  const comms = new Map<string, CommTable>();
  const members = new Map<number, Member>();
  let omitted = 0;
  for (const [host, answer] of second.answers) {
    omitted += answer.omitted;
    const earlier = first.answers.get(host);
    for (const process of answer.processes) {
      if (!members.has(process.jobRank)) members.set(process.jobRank, memberOf(host, process, answer, earlier));
    }
    for (const { communicator: id, epoch, size, ranks } of answer.communicators) {
      const comm: CommTable = comms.get(`${id}:${epoch}`) ?? { id, epoch, size, places: [], byRank: new Map() };
      comms.set(`${id}:${epoch}`, comm);
      for (const position of ranks) {
        const member = members.get(position.jobRank);
        if (member === undefined) continue;
        const known = before.get(`${id}:${epoch}:${position.rank}`);
        const moved = known !== undefined && hasMoved(known, position, earlier?.monotonicUs ?? 0);
        // A host that was silent at the first reading cannot withdraw what its ranks say now.
        const waits = position.inside && (earlier === undefined || (known?.inside === true && !moved));
        const place: Place = { ...position, comm, member, waits, moved };
        comm.places.push(place);
        comm.byRank.set(position.rank, place);
        member.places.push(place);
      }
    }
  }
  const silent = second.asked.filter((host) => !second.answers.has(host));
  for (const { places } of comms.values()) places.sort((one, other) => one.jobRank - other.jobRank);
  const ordered = [...members.values()].toSorted((one, other) => one.jobRank - other.jobRank);
  return { comms: [...comms.values()], members: ordered, blocked: blockedEdges(first, second), silent, omitted };
}

/** Number of ranks of a communicator that no answer has. */
export function missingFrom({ size, byRank }: CommTable): number {
  return Math.max(0, size - byRank.size);
}

function firstPlaces({ answers }: Reading): ReadonlyMap<string, RankPosition> {
  const all = new Map<string, RankPosition>();
  for (const { communicators } of answers.values()) {
    for (const { communicator, epoch, ranks } of communicators)
      for (const position of ranks) all.set(`${communicator}:${epoch}:${position.rank}`, position);
  }
  return all;
}

/**
 * The warps of a kernel say in turn when each of them began to wait, so that this differs from look to look while none makes progress: only a wait
 * that began after the first reading, `firstUs`, follows a step that moved.
 */
function hasMoved(before: RankPosition, now: RankPosition, firstUs: number): boolean {
  if (before.operation !== now.operation) return true;
  return before.byKernel && now.byKernel ? now.progressUs > firstUs : before.progressUs !== now.progressUs;
}

function memberOf(
  host: string,
  process: RankProcess,
  answer: HostRankPositions,
  earlier: HostRankPositions | undefined,
): Member {
  const before = earlier?.processes.find(({ jobRank }) => jobRank === process.jobRank);
  const passedMs = answer.atMs - (earlier?.atMs ?? answer.atMs);
  const usedMs = before === undefined || process.state === 'gone' ? null : process.cpuMs - before.cpuMs;
  const cpuShare = usedMs === null || passedMs <= 0 ? null : usedMs / passedMs;
  const heldUp = before === undefined ? 0 : Math.max(0, (process.throttled ?? 0) - (before.throttled ?? 0));
  const isFrozen = FROZEN.has(process.state) && before?.state === process.state;
  return { ...process, host, cpuShare, heldUp, isFrozen, places: [] };
}
