/** What the user wants the planner to choose from: NCCL_ALGO, NCCL_PROTO, NCCL_P2P_DISABLE and NCCL_P2P_LEVEL. */
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import { COLLECTIVES } from '../../collectives.ts';
import { UnplannableError } from './check.ts';
import { ANY_CHANNELS, MAX_CHANNELS } from './limits.ts';
import type { ChannelLimits } from './limits.ts';
import { anyNumber, valueOf, wholeNumber } from './variables.ts';
import type { Environment } from './variables.ts';

/** The part of a variant that a user chooses. */
export interface AlgorithmAndProtocol {
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
}

export interface Preferences {
  /** What each collective may take; all, where it has no entry. */
  readonly algorithms: Wanted<AlgorithmName>;
  readonly protocols: Wanted<ProtocolName>;
  /** GPUs of one host may store into each other's memory (NCCL_P2P_DISABLE, NCCL_P2P_LEVEL). */
  readonly gpusReachEachOther: boolean;
  /** NCCL_MIN_NCHANNELS, NCCL_MAX_NCHANNELS and NCCLRUN_MAX_SMS. */
  readonly channels: ChannelLimits;
}
type Wanted<Name> = ReadonlyMap<CollectiveName, ReadonlySet<Name>>;

export const NO_PREFERENCES: Preferences = {
  algorithms: new Map(),
  protocols: new Map(),
  gpusReachEachOther: true,
  channels: ANY_CHANNELS,
};

/** NCCL's names, of which some mean nothing here, and ours: `direct`, `rail`, `copyengine`. */
const ALGORITHMS_BY_NAME = new Map<string, readonly AlgorithmName[]>([
  ['direct', ['directOneShot', 'directTwoShot']],
  ['ring', ['ring']],
  ['tree', ['tree']],
  ['rail', ['rail']],
  ['copyengine', ['copyEngine']],
  ['collnet', ['collnet', 'collnetChain']],
  ['collnetdirect', ['collnet']],
  ['collnetchain', ['collnetChain']],
  ['nvls', []],
  ['nvlstree', []],
  ['pat', []],
]);
const PROTOCOLS_BY_NAME = new Map<string, readonly ProtocolName[]>([
  ['simple', ['simple']],
  ['ll', ['ll']],
  ['ll128', ['ll128']],
]);
const COLLECTIVES_BY_NAME = new Map<string, CollectiveName>(COLLECTIVES.map((name) => [name.toLowerCase(), name]));

/** Throws UnplannableError for a name that is unknown, and for a number that means nothing. */
export function preferencesFrom(environment: Environment): Preferences {
  return {
    channels: channelLimits(environment),
    algorithms: wanted('NCCL_ALGO', environment, ALGORITHMS_BY_NAME),
    protocols: wanted('NCCL_PROTO', environment, PROTOCOLS_BY_NAME),
    gpusReachEachOther: gpusReachEachOther(environment),
  };
}

const MAX_REQUESTED = 9999;

/** NCCL_P2P_LEVEL=LOC lets a GPU reach its own memory alone. */
function gpusReachEachOther(environment: Environment): boolean {
  const level = valueOf(environment, 'NCCL_P2P_LEVEL')?.toUpperCase();
  return wholeNumber(environment, 'NCCL_P2P_DISABLE', 0, 1) !== 1 && level !== 'LOC' && level !== '0';
}

/**
 * How many channels the user wants; each takes an SM of a GPU. As with NCCL more than there can be are as many as there can be, and
 * less than one is one: a script's NCCL_MIN_NCHANNELS=0 or -1 asks for nothing. Throws UnplannableError.
 */
export function channelLimits(environment: Environment): ChannelLimits {
  const limit = (name: string, otherwise: number): number => {
    const isOurs = name.startsWith('NCCLRUN_');
    const asked = isOurs ? wholeNumber(environment, name, 1, MAX_REQUESTED) : anyNumber(environment, name);
    return Math.min(MAX_CHANNELS, Math.max(1, asked ?? otherwise));
  };
  const min = limit('NCCL_MIN_NCHANNELS', ANY_CHANNELS.min);
  let max = ANY_CHANNELS.max;
  for (const name of ['NCCL_MAX_NCHANNELS', 'NCCLRUN_MAX_SMS']) {
    const bound = limit(name, ANY_CHANNELS.max);
    if (min > bound) throw new UnplannableError(`NCCL_MIN_NCHANNELS=${min} is more than ${name}=${bound}`);
    max = Math.min(max, bound);
  }
  return { min, max };
}

export function isPreferred(
  collective: CollectiveName,
  variant: AlgorithmAndProtocol,
  { algorithms, protocols }: Preferences,
): boolean {
  return (
    (algorithms.get(collective)?.has(variant.algorithm) ?? true) &&
    (protocols.get(collective)?.has(variant.protocol) ?? true)
  );
}

/** "ring,tree": these; "^ring,tree": all but these; "ring;allreduce:tree": for all collectives, and then for one. */
function wanted<Name>(
  variable: string,
  environment: Environment,
  known: ReadonlyMap<string, readonly Name[]>,
): Wanted<Name> {
  const text = environment[variable]?.trim() ?? '';
  const result = new Map<CollectiveName, ReadonlySet<Name>>();
  if (text === '') return result;
  for (const part of text.toLowerCase().split(';')) {
    const colon = part.indexOf(':');
    const names = namesOf(`${variable}=${text}`, part.slice(colon + 1).trim(), known);
    const word = part.slice(0, Math.max(colon, 0)).trim();
    const collective = COLLECTIVES_BY_NAME.get(word);
    if (colon !== -1 && collective === undefined) {
      const all = [...COLLECTIVES_BY_NAME.keys()].join(', ');
      throw new UnplannableError(`${variable}=${text}: '${word}' is no collective; there are ${all}`);
    }
    for (const one of collective === undefined ? COLLECTIVES : [collective]) result.set(one, names);
  }
  return result;
}

function namesOf<Name>(setting: string, list: string, known: ReadonlyMap<string, readonly Name[]>): ReadonlySet<Name> {
  const excludes = list.startsWith('^');
  const given = new Set<Name>();
  for (const part of list.slice(excludes ? 1 : 0).split(',')) {
    const names = known.get(part.trim());
    if (names === undefined) {
      const all = [...known.keys()].join(', ');
      throw new UnplannableError(
        `${setting}: '${part.trim()}' is unknown; there are ${all}, and a ^ before them means all others`,
      );
    }
    for (const name of names) given.add(name);
  }
  if (!excludes) return given;
  return new Set([...known.values()].flat().filter((name) => !given.has(name)));
}
