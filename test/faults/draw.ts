/** What a round is. Everything comes of its seed. */
import { seededRandom, type Random } from '../rig/random.ts';
import { moments, type Kind, type Moment } from './kind.ts';

export const HOSTS = 4;
const MAX_SLOTS = 2;
const remoteShells = ['ssh2', 'openssh'] as const;
/** Of the stream, in which a rank misbehaves. */
const operations = { first: 11, count: 100 } as const;

export interface Draw {
  readonly seed: number;
  readonly kind: Kind;
  readonly moment: Moment;
  /** By host. */
  readonly slots: readonly number[];
  /** Who is struck: an index, and a rank that runs there. */
  readonly host: number;
  readonly rank: number;
  readonly rsh: (typeof remoteShells)[number];
  /** In the middle of the stream. */
  readonly operation: number;
  /** For what is drawn later. */
  readonly random: Random;
}

/** `when`: moments to choose from, as far as the kind may strike then. */
export function draw(seed: number, among: readonly Kind[], when: readonly Moment[] = moments): Draw {
  const random = seededRandom(seed);
  const kind = pick(among, random);
  const possible = moments.filter((moment) => kind.verdicts[moment] !== undefined);
  const wanted = possible.filter((moment) => when.includes(moment));
  const moment = pick(wanted.length > 0 ? wanted : possible, random);
  const slots = Array.from({ length: HOSTS }, () => 1 + random(MAX_SLOTS));
  const host = random(HOSTS);
  const before = slots.slice(0, host).reduce((sum, count) => sum + count, 0);
  const rank = before + random(slots[host] ?? 1);
  const operation = operations.first + random(operations.count);
  return { seed, kind, moment, slots, host, rank, rsh: pick(remoteShells, random), operation, random };
}

function pick<Item>(items: readonly Item[], random: Random): Item {
  const item = items[random(items.length)];
  if (item === undefined) throw new Error('nothing to draw from');
  return item;
}
