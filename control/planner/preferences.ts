/** What the user wants the planner to choose from: NCCL_ALGO, NCCL_PROTO and NCCL_P2P_DISABLE. */
import type { AlgorithmName, ProtocolName } from '../plan/types.ts';
import { UnplannableError } from './check.ts';

/** A form, as far as a user chooses it. */
export interface Way {
  readonly algorithm: AlgorithmName;
  readonly protocol: ProtocolName;
}

export interface Preferences {
  /** Null: all. */
  readonly algorithms: ReadonlySet<AlgorithmName> | null;
  readonly protocols: ReadonlySet<ProtocolName> | null;
  /** GPUs of one host may store into each other's memory (NCCL_P2P_DISABLE). */
  readonly gpusReachEachOther: boolean;
}

export const NO_PREFERENCES: Preferences = { algorithms: null, protocols: null, gpusReachEachOther: true };

const ALGORITHMS_BY_NAME = new Map<string, readonly AlgorithmName[]>([
  ['direct', ['directOneShot', 'directTwoShot']],
  ['ring', ['ring']],
  ['tree', ['tree']],
  ['collnet', ['collnet']],
]);
const PROTOCOLS_BY_NAME = new Map<string, readonly ProtocolName[]>([
  ['simple', ['simple']],
  ['ll', ['ll']],
  ['ll128', ['ll128']],
]);

/** Throws UnplannableError for a name that is unknown. */
export function preferencesFrom(environment: Readonly<Record<string, string | undefined>>): Preferences {
  return {
    algorithms: choice('NCCL_ALGO', environment, ALGORITHMS_BY_NAME),
    protocols: choice('NCCL_PROTO', environment, PROTOCOLS_BY_NAME),
    gpusReachEachOther: environment['NCCL_P2P_DISABLE'] !== '1',
  };
}

export function isPreferred(form: Way, { algorithms, protocols }: Preferences): boolean {
  return (algorithms?.has(form.algorithm) ?? true) && (protocols?.has(form.protocol) ?? true);
}

/** "ring,tree": these; "^ring,tree": all but these; unset or empty: null. */
function choice<Name>(
  variable: string,
  environment: Readonly<Record<string, string | undefined>>,
  known: ReadonlyMap<string, readonly Name[]>,
): ReadonlySet<Name> | null {
  const text = environment[variable]?.trim().toLowerCase() ?? '';
  if (text === '') return null;
  const excludes = text.startsWith('^');
  const given = new Set<Name>();
  for (const part of text.slice(excludes ? 1 : 0).split(',')) {
    const names = known.get(part.trim());
    if (names === undefined) {
      const all = [...known.keys()].join(', ');
      throw new UnplannableError(
        `${variable}=${environment[variable]}: '${part.trim()}' is unknown; there are ${all}, and a ^ before them means all others`,
      );
    }
    for (const name of names) given.add(name);
  }
  if (!excludes) return given;
  return new Set([...known.values()].flat().filter((name) => !given.has(name)));
}
