/** Faults that test/gpu/native/faulty.c plants in one rank of a job, and which verdict is right about each. */
import type { VerdictKind } from '../../launcher/model/hang.ts';
import { silentFileUnavailable } from '../rig/silent-file.ts';

export const COLLECTIVES = [
  'allReduce',
  'allGather',
  'reduceScatter',
  'broadcast',
  'reduce',
  'allToAll',
  'gather',
  'scatter',
  'sendRecv',
  'barrier',
] as const;
export type Collective = (typeof COLLECTIVES)[number];

export interface Fault {
  readonly name: string;
  readonly kinds: readonly VerdictKind[];
  /** The verdict names the faulty call by its number; else that or a later one in which ranks wait. */
  readonly exact: boolean;
  /** Collectives whose call has what the fault changes. */
  readonly of: readonly Collective[];
  /** In replays of a graph, too. */
  readonly replays: boolean;
}

const all = COLLECTIVES;
const counted = all.filter((one) => one !== 'sendRecv' && one !== 'barrier');
const rooted: readonly Collective[] = ['broadcast', 'reduce', 'gather', 'scatter'];
const reducing: readonly Collective[] = ['allReduce', 'reduceScatter', 'reduce'];
const late = ['late', 'stuck-outside'] as const;

/** Null, or the sentence why a fault cannot be planted here. */
export function faultUnavailable({ name }: Pick<Fault, 'name'>): string | null {
  if (name === 'disk') return silentFileUnavailable();
  return name === 'freeze' && process.getuid?.() !== 0 ? 'the freezer of control groups needs root' : null;
}

export const FAULTS: readonly Fault[] = [
  { name: 'pause', kinds: late, exact: false, of: all, replays: true },
  { name: 'busy', kinds: ['late'], exact: false, of: all, replays: true },
  { name: 'stop', kinds: ['stopped'], exact: false, of: all, replays: true },
  { name: 'inside', kinds: ['stopped'], exact: false, of: all, replays: false },
  { name: 'sleep', kinds: ['stuck-outside'], exact: false, of: all, replays: true },
  { name: 'disk', kinds: ['stuck-outside'], exact: false, of: all, replays: true },
  { name: 'freeze', kinds: ['stopped'], exact: false, of: all, replays: true },
  { name: 'kill', kinds: ['rank-dead'], exact: false, of: all, replays: true },
  { name: 'exit', kinds: ['rank-dead'], exact: false, of: all, replays: true },
  { name: 'skip', kinds: ['mismatch-size'], exact: true, of: counted, replays: false },
  { name: 'extra', kinds: ['mismatch-size'], exact: false, of: counted, replays: false },
  {
    name: 'alone',
    kinds: ['extra-call'],
    exact: true,
    of: ['allReduce', 'allGather', 'reduceScatter', 'allToAll', 'barrier'],
    replays: true,
  },
  { name: 'size', kinds: ['mismatch-size'], exact: true, of: counted, replays: false },
  { name: 'type', kinds: ['mismatch-type', 'mismatch-size'], exact: true, of: reducing, replays: false },
  { name: 'operator', kinds: ['mismatch-type'], exact: true, of: reducing, replays: false },
  { name: 'order', kinds: ['mismatch-order'], exact: true, of: [...counted, 'barrier'], replays: false },
  { name: 'root', kinds: ['mismatch-root'], exact: true, of: rooted, replays: false },
  {
    name: 'deadlock',
    kinds: ['deadlock'],
    exact: false,
    of: ['allReduce', 'allGather', 'reduceScatter', 'allToAll', 'barrier'],
    replays: false,
  },
  { name: 'leave', kinds: ['left'], exact: false, of: all, replays: false },
];
