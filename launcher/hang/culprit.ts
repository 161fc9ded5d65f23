/** A rank that others wait for: where it is, what is said about it, and which facts speak for that. */
import type { ProcessSleep } from '../../control/messages/hang.ts';
import { rankName } from '../text/rank-name.ts';
import { ranges } from '../text/ranges.ts';
import type { Blamed, Evidence, RankWhere, VerdictKind } from '../model/hang.ts';
import type { Member, Place } from './table.ts';

/** Ranks that a verdict names singly. */
export const MAX_NAMED = 10;
/** Above this part of a CPU a process computes. */
export const COMPUTES = 0.2;

export interface Culprit {
  readonly member: Member;
  /** In the communicator of the verdict. */
  readonly place: Place;
  readonly kind: VerdictKind;
  readonly where: RankWhere;
  /** "has begun no operation", "have begun no operation" */
  readonly one: string;
  readonly many: string;
}

/** `operation`: in which the others wait. */
export function culprit(place: Place, operation: number): Culprit {
  const { member } = place;
  const [one, many] = complaint(place, operation);
  const as = (kind: VerdictKind, where: RankWhere, one: string, many: string): Culprit => {
    return { member, place, kind, where, one, many };
  };
  if (member.isFrozen) {
    if (member.state === 'stopped')
      return as('stopped', 'stopped', 'is stopped (SIGSTOP, or a debugger)', 'are stopped (SIGSTOP, or a debugger)');
    if (member.state === 'frozen')
      return as('stopped', 'stopped', 'is frozen (by its control group)', 'are frozen (by their control groups)');
    if (member.state === 'zombie')
      return as('rank-dead', 'dead', 'has ended: its process is gone', 'have ended: their processes are gone');
    const asleep = ', in uninterruptible sleep';
    return as('stuck-outside', 'uninterruptible', `${one}${asleep}`, `${many}${asleep}`);
  }
  const moving = member.places.find((other) => other.inside && !other.waits);
  if (moving !== undefined && (moving.comm !== place.comm || place.operation >= operation)) {
    const where = `in operation ${moving.operation} (${moving.collective}) of communicator ${moving.comm.id}`;
    return as(
      'late',
      moving.comm === place.comm ? 'inside' : 'other-communicator',
      `${one}; it makes progress ${where}`,
      `${many}; they make progress in operations of other communicators`,
    );
  }
  if (place.inside) return as('late', 'inside', one, many);
  const isRunning = (member.cpuShare ?? 0) >= COMPUTES || member.heldUp > 0 || member.state === 'running';
  return as(isRunning ? 'late' : 'stuck-outside', 'outside', one, many);
}

/** `awaited`: the operation in which the others wait. */
function complaint({ operation, inside, collective }: Place, awaited: number): readonly [one: string, many: string] {
  if (inside) {
    const what = `still in operation ${operation} (${collective})`;
    return [`is ${what}`, `are ${what}`];
  }
  if (operation === 0) return ['has begun no operation', 'have begun no operation'];
  if (operation >= awaited) {
    const where = `outside of operation ${operation} (${collective}), in which kernels of others wait`;
    return [`is ${where}`, `are ${where}`];
  }
  const since = `begun none since operation ${operation} (${collective}), which`;
  return [`has ${since} it has ended`, `have ${since} they have ended`];
}

/** One sentence for all whose complaints are equal; at most ten ranks are named singly. */
export function complaints(culprits: readonly Culprit[]): string[] {
  const groups = new Map<string, Culprit[]>();
  for (const one of culprits) groups.set(one.many, [...(groups.get(one.many) ?? []), one]);
  return [...groups.values()].map((group) => {
    const [first] = group;
    if (first === undefined) return '';
    const facts = new Set(group.map(({ member }) => factText(member)));
    const [fact = ''] = facts.size === 1 ? facts : [];
    if (group.length === 1) return `${nameOf(first.member)} ${first.one}${fact}`;
    return `${namesOf(group.map(({ member }) => member))} ${first.many}${fact}`;
  });
}

export function nameOf({ jobRank, host, pid, gpu }: Member): string {
  return rankName({ rank: jobRank, host, pid, gpu });
}

/** With their hosts where they are few. */
export function namesOf(members: readonly Member[]): string {
  const all = new Map(members.map((member) => [member.jobRank, member]));
  const names = [...all.values()].map(nameOf);
  const last = names.pop() ?? 'no rank';
  if (names.length === 0) return last;
  if (names.length < MAX_NAMED) return `${names.join(', ')} and ${last}`;
  const hosts = new Set(members.map(({ host }) => host));
  const where = hosts.size === 1 ? `on ${[...hosts].join('')}` : `on ${hosts.size} hosts`;
  return `${all.size} ranks ${where} (${rankRanges([...all.keys()])})`;
}

export function rankRanges(ranks: readonly number[]): string {
  return ranges([...new Set(ranks)].toSorted((one, other) => one - other));
}

/** What its process does, for the end of a sentence. */
function factText({ state, isFrozen, sleep, cpuShare, heldUp }: Member): string {
  if (isFrozen && state !== 'uninterruptible') return '';
  const held = heldUp > 0 ? ', held up by the CPU limit of its cgroup' : '';
  if (sleep !== null && (state === 'uninterruptible' || (cpuShare ?? 0) < COMPUTES)) {
    const file = sleep.file === null ? '' : ` of ${sleep.file}`;
    return isFrozen
      ? ` in ${sleep.call}${file}${channelText(sleep)}${held}`
      : `, asleep in ${sleep.call}${file}${held}`;
  }
  return (cpuShare ?? 0) >= COMPUTES || state === 'running' ? `, running${held}` : held;
}

/** Where uninterruptible sleep keeps it, it is the kernel that must be asked why. */
function channelText({ call, channel }: ProcessSleep): string {
  return channel === null || channel === call ? '' : ` (${channel})`;
}

export function evidenceOf({ member }: Culprit): Evidence[] {
  const { jobRank, host, state, cpuShare, heldUp, sleep } = member;
  const about = { host, subject: `rank ${jobRank}` };
  const evidence: Evidence[] = [{ kind: 'process-state', ...about, value: state, unit: null }];
  if (cpuShare !== null) evidence.push({ kind: 'cpu-share', ...about, value: Math.round(cpuShare * 100), unit: '%' });
  if (sleep !== null) {
    const value = sleep.file === null ? sleep.call : `${sleep.call} of ${sleep.file}`;
    evidence.push({ kind: 'sleeps-in', ...about, value, unit: null });
    if (sleep.channel !== null) evidence.push({ kind: 'wait-channel', ...about, value: sleep.channel, unit: null });
  }
  if (heldUp > 0) evidence.push({ kind: 'throttled', ...about, value: heldUp, unit: 'periods' });
  return evidence;
}

/** At most ten singly, and all others in one entry. */
export function blamedOf(culprits: readonly Culprit[]): Blamed[] {
  const single = culprits.slice(0, MAX_NAMED).map((one): Blamed => {
    const { member, place, where } = one;
    const { operation: number, collective, waitsFor, comm } = place;
    return {
      ranks: `${member.jobRank}`,
      host: member.host,
      gpu: member.gpu,
      pid: member.pid,
      where,
      last: number === 0 ? null : { number, collective },
      waitsFor: waitsFor === null ? null : (comm.byRank.get(waitsFor.rank)?.jobRank ?? null),
      because: evidenceOf(one),
    };
  });
  const rest = culprits.slice(MAX_NAMED);
  const [first] = rest;
  if (first === undefined) return single;
  const where = rest.every((one) => one.where === first.where) ? first.where : 'unknown';
  const ranks = rankRanges(rest.map(({ member }) => member.jobRank));
  return [...single, { ranks, host: null, gpu: null, pid: null, where, last: null, waitsFor: null, because: [] }];
}
