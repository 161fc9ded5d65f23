/** Verdicts that need no wait: about a rank that failed, a host that was lost, ranks that do not join, and calls that differ. */
import type { HostRankPositions, LeftBehind } from '../../control/messages/hang.ts';
import type { Blamed, Confidence, Evidence, Verdict, VerdictKind, VerdictOperation } from '../model/hang.ts';
import { rankName } from '../text/rank-name.ts';
import { blamedOf, rankRanges } from './culprit.ts';
import { differenceFinding } from './difference.ts';
import { waitGraph } from './graph.ts';
import { callDifference } from './mismatch.ts';
import { jobTable, missingFrom } from './table.ts';
import type { Place, Reading } from './table.ts';
import { operationAt, REMEDY } from './verdict.ts';

const MAX_EVIDENCE = 32;

interface PlainVerdict {
  readonly kind: VerdictKind;
  readonly confidence: Confidence;
  readonly message: string;
  readonly blamed: readonly Blamed[];
  readonly evidence: readonly Evidence[];
  readonly communicator?: Verdict['communicator'];
  readonly operation?: Verdict['operation'];
  readonly waiting?: readonly number[];
  readonly seconds?: number;
  readonly remedy?: string;
}

/** A verdict with nothing in the fields that only waits have. */
export function plainVerdict(verdict: PlainVerdict): Verdict {
  const { kind, seconds = 0, waiting = [], evidence } = verdict;
  return {
    schemaVersion: 1,
    kind,
    confidence: verdict.confidence,
    seconds,
    communicator: verdict.communicator ?? null,
    operation: verdict.operation ?? null,
    blamed: verdict.blamed,
    waiting: { ranks: rankRanges(waiting), count: waiting.length, longestSeconds: seconds },
    chain: [],
    classes: [],
    stacks: [],
    evidence: evidence.slice(0, MAX_EVIDENCE),
    consequences: 0,
    remedy: verdict.remedy ?? REMEDY[kind],
    message: verdict.message,
  };
}

/** Blames ranks of which no more is known. */
export function blamedAs(ranks: readonly number[], host: string | null, where: Blamed['where']): Blamed {
  return { ranks: rankRanges(ranks), host, gpu: null, pid: null, where, last: null, waitsFor: null, because: [] };
}

/** The calls of a communicator differ, as far as these ranks show. */
export function showsDifference(reading: Reading, id: string, epoch: number): boolean {
  const comm = jobTable(reading, reading).comms.find((one) => one.id === id && one.epoch === epoch);
  return comm !== undefined && callDifference(comm) !== null;
}

/** It is known of every rank which call it made where they differ. */
export function isWhole(reading: Reading): boolean {
  const [comm] = jobTable(reading, reading).comms;
  const difference = comm === undefined || missingFrom(comm) > 0 ? null : callDifference(comm);
  return difference?.exact === true && comm?.places.every(({ calls }) => (calls?.count ?? 0) >= difference.at) === true;
}

/** The calls of a communicator's ranks differ. `sentence`: what the ranks were told, where their pages show no difference. */
export function differenceVerdict(reading: Reading, sentence: string): Verdict {
  const table = jobTable(reading, reading);
  const [comm] = table.comms;
  const [place] = comm?.places ?? [];
  const finding = comm === undefined || place === undefined ? null : differenceFinding(comm, place, waitGraph(table));
  const communicator = comm === undefined ? null : { id: comm.id, epoch: comm.epoch, size: comm.size };
  const where = communicator === null ? '' : ` (communicator ${communicator.id})`;
  if (finding === null || comm === undefined) {
    const unknown = { kind: 'mismatch-order', confidence: 'suspected', blamed: [], evidence: [] } as const;
    return plainVerdict({ ...unknown, communicator, message: `${sentence}${where}` });
  }
  const { kind, confidence, culprits, evidence, late, operation } = finding;
  const guilty = new Set(culprits.map(({ place: { jobRank } }) => jobRank));
  return plainVerdict({
    kind,
    confidence,
    communicator,
    operation: operation ?? null,
    blamed: blamedOf(culprits),
    evidence,
    waiting: comm.places.flatMap(({ inside, jobRank }) => (inside && !guilty.has(jobRank) ? [jobRank] : [])),
    message: `${late.join('; ')}${where}`,
  });
}

function calledBy({ calls, operation }: Place): number {
  return Math.max(calls?.count ?? 0, operation);
}

/** A rank has left a communicator in which others wait for it. */
export function leftVerdict({ jobRank, rank, sentence, communicator, epoch }: LeftBehind, reading: Reading): Verdict {
  const comm = jobTable(reading, reading).comms.find((one) => one.id === communicator && one.epoch === epoch);
  const place = comm?.places.toSorted((one, other) => calledBy(other) - calledBy(one))[0];
  const [host = null] = jobRank < 0 ? [] : reading.asked;
  const evidence = { kind: 'left', host, subject: `rank ${jobRank < 0 ? rank : jobRank}`, value: sentence, unit: null };
  return plainVerdict({
    kind: 'left',
    confidence: 'certain',
    message: `${sentence} (communicator ${communicator})`,
    blamed: jobRank < 0 ? [] : [{ ...blamedAs([jobRank], host, 'left'), because: [evidence] }],
    evidence: [evidence],
    communicator: comm === undefined ? null : { id: communicator, epoch, size: comm.size },
    operation: place === undefined ? null : calledAt(place),
    waiting: comm?.places.flatMap((one) => (one.inside ? [one.jobRank] : [])) ?? [],
  });
}

/** An operation that is refused is called, and does not begin. */
function calledAt(place: Place): VerdictOperation {
  const { calls, operation } = place;
  if (calls === null || calls.call === null || calls.count <= operation) return operationAt(place);
  return { number: calls.count, bytes: 0, ...calls.call };
}

/** How a rank ended that failed. */
interface FailedRank {
  readonly rank: number;
  readonly host: string;
  readonly pid: number;
  /** `exited with status 3`, `died of SIGKILL` */
  readonly phrase: string;
  /** Where it was, if its agent has said so. */
  readonly where: HostRankPositions | null;
}

export function rankDeadVerdict({ rank, host, pid, phrase, where }: FailedRank): Verdict {
  const place = where === null ? null : lastPlace(host, where, rank);
  const name = rankName({ rank, host, pid, gpu: place?.member.gpu ?? null });
  const evidence = { kind: 'exit', host, subject: `rank ${rank}`, value: phrase, unit: null };
  return plainVerdict({
    kind: 'rank-dead',
    confidence: 'certain',
    message: `${name} ${phrase}${place === null ? '' : placeText(place)}`,
    blamed: [
      {
        ...blamedAs([rank], host, 'dead'),
        gpu: place?.member.gpu ?? null,
        pid,
        last:
          place === null || place.operation === 0 ? null : { number: place.operation, collective: place.collective },
        because: [evidence],
      },
    ],
    evidence: [evidence],
    communicator: place === null ? null : { id: place.comm.id, epoch: place.comm.epoch, size: place.comm.size },
    operation: place?.inside === true ? operationAt(place) : null,
  });
}

/** In the communicator that it is inside of, or used last. */
function lastPlace(host: string, where: HostRankPositions, rank: number): Place | null {
  const reading = { answers: new Map([[host, where]]), asked: [host] };
  const places = jobTable(reading, reading).comms.flatMap((comm) => comm.places.filter((one) => one.jobRank === rank));
  const [last] = places.toSorted(
    (one, other) => Number(other.inside) - Number(one.inside) || other.progressUs - one.progressUs,
  );
  return last ?? null;
}

function placeText({ operation, inside, collective, comm }: Place): string {
  if (operation === 0) return `, before its first operation of communicator ${comm.id}`;
  const what = `operation ${operation} (${collective}) of communicator ${comm.id}`;
  return inside ? `, in ${what}` : `, after ${what}`;
}

export function hostSilentVerdict(host: string, ranks: readonly number[], reason: string): Verdict {
  const evidence = { kind: 'silent', host, subject: host, value: reason, unit: null };
  return plainVerdict({
    kind: 'host-silent',
    confidence: 'certain',
    message: `${host} was lost: ${reason}`,
    blamed: [{ ...blamedAs(ranks, host, 'unknown'), because: [evidence] }],
    evidence: [evidence],
  });
}

/** `missing`: their names; `ranks`: those of the job, as far as they are known. */
export function initMissingVerdict(
  what: string,
  missing: readonly string[],
  ranks: readonly number[],
  seconds: number,
): Verdict {
  const evidence = missing.map((name) => ({ kind: 'missing', host: null, subject: name, value: what, unit: null }));
  return plainVerdict({
    kind: 'init-missing',
    confidence: 'certain',
    message: `${what} has waited ${seconds} s for ${missing.slice(0, 10).join(', ')}${missing.length > 10 ? ` and ${missing.length - 10} more` : ''}`,
    blamed: ranks.length === 0 ? [] : [blamedAs(ranks, null, 'outside')],
    evidence,
    seconds,
  });
}
