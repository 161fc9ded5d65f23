/** The state of a job from two readings of its ranks' positions. */
import type { CommunicatorGroup, ConditionShare, JobStatus, Outlier, RankCondition } from '../model/status.ts';
import { MAX_NAMED, rankRanges } from './culprit.ts';
import { jobTable } from './table.ts';
import type { CommTable, Member, Place, Reading } from './table.ts';

const MAX_IDS = 16;
/** Ranks stand out if they are at most this part of their communicator. */
const FEW = 0.25;
const MAX_OUTLIERS = 64;

/** One at least. */
type Some<Value> = [Value, ...Value[]];

export function jobStatus(
  first: Reading,
  second: Reading,
  { ranks, takenAt, verdicts }: Pick<JobStatus, 'ranks' | 'takenAt' | 'verdicts'>,
): JobStatus {
  const { comms, members, silent } = jobTable(first, second);
  const seen = comms.map((comm) => ({ comm, outliers: outliersOf(comm) }));
  return {
    schemaVersion: 1,
    takenAt,
    ranks,
    hosts: second.asked.length,
    silent,
    outliers: seen.flatMap(({ outliers }) => outliers).slice(0, MAX_OUTLIERS),
    groups: groupsOf(seen),
    without: Math.max(0, ranks - members.length),
    verdicts,
  };
}

function conditionOf({ member, inside, waits, moved }: Place): RankCondition {
  if (member.isFrozen) return frozenAs(member);
  if (waits) return 'waiting';
  return inside || moved ? 'running' : 'idle';
}

function frozenAs({ state }: Member): RankCondition {
  return state === 'stopped' || state === 'frozen' || state === 'uninterruptible' ? state : 'dead';
}

function outliersOf({ id, size, places }: CommTable): Outlier[] {
  // The number of an operation that makes progress differs between ranks from one moment to the next.
  const classes = grouped(places, (place) => {
    const condition = conditionOf(place);
    return condition === 'running' ? condition : `${condition}:${place.operation}`;
  });
  const [most, ...others] = classes.toSorted((one, other) => other.length - one.length);
  const isMoving = most?.every((place) => conditionOf(place) === 'running') === true;
  if (most === undefined || isMoving) return others.flatMap((own) => (isStuck(own) ? [outlier(id, own, null)] : []));
  return others.flatMap((own) => {
    const isFew = own.length <= MAX_NAMED && own.length <= size * FEW;
    return isFew ? [outlier(id, own, most[0])] : [];
  });
}

/** In a communicator that makes progress only ranks that cannot go on are worth a line. */
function isStuck(places: readonly Place[]): boolean {
  return places.length <= MAX_NAMED && places.every(({ member }) => member.isFrozen);
}

function outlier(communicator: string, own: Some<Place>, most: Place | null): Outlier {
  const [first] = own;
  return {
    ranks: rankRanges(own.map(({ jobRank }) => jobRank)),
    hosts: [...new Set(own.map(({ member }) => member.host))],
    communicator,
    condition: conditionOf(first),
    seconds: secondsOf(own),
    operation: first.operation === 0 ? null : first.operation,
    others: most === null || most.operation === 0 ? null : most.operation,
    collective: first.operation === 0 ? null : first.collective,
  };
}

function groupsOf(
  seen: readonly { readonly comm: CommTable; readonly outliers: readonly Outlier[] }[],
): CommunicatorGroup[] {
  const groups = grouped(seen, ({ comm, outliers }) => {
    const shares = sharesOf(comm.places).map(({ condition, count }) => `${condition} ${count}`);
    return [comm.size, hostsOf(comm), outliers.some(Boolean), ...shares].join(':');
  });
  return groups
    .map(([{ comm }, ...others]) => groupOf([comm, ...others.map((one) => one.comm)]))
    .toSorted((one, other) => other.size - one.size || other.count - one.count);
}

function groupOf(comms: Some<CommTable>): CommunicatorGroup {
  const [first] = comms;
  const places = comms.flatMap((comm) => comm.places);
  const latest = places.reduce<Place | null>(
    (last, place) => (last === null || place.operation > last.operation ? place : last),
    null,
  );
  return {
    count: comms.length,
    ids: comms.slice(0, MAX_IDS).map(({ id }) => id),
    size: first.size,
    hosts: hostsOf(first),
    shares: sharesOf(places),
    operations:
      latest === null || latest.operation === 0
        ? null
        : {
            lowest: places.reduce((low, { operation }) => Math.min(low, operation), latest.operation),
            highest: latest.operation,
            collective: latest.collective,
          },
  };
}

function sharesOf(places: readonly Place[]): ConditionShare[] {
  return grouped(places, conditionOf)
    .map((own) => ({ condition: conditionOf(own[0]), count: own.length, seconds: secondsOf(own) }))
    .toSorted((one, other) => other.count - one.count);
}

function secondsOf(places: readonly Place[]): number {
  const longest = places.reduce((most, { waits, waitedMs }) => Math.max(most, waits ? waitedMs : 0), 0);
  return Math.round(longest / 100) / 10;
}

function hostsOf({ places }: CommTable): number {
  return new Set(places.map(({ member }) => member.host)).size;
}

/** The values of each name, in the order of first mention. */
function grouped<Value>(values: readonly Value[], nameOf: (value: Value) => string): Some<Value>[] {
  const groups = new Map<string, Some<Value>>();
  for (const value of values) {
    const name = nameOf(value);
    const known = groups.get(name);
    if (known === undefined) groups.set(name, [value]);
    else known.push(value);
  }
  return [...groups.values()];
}
