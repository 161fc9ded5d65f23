/** Replaces a choice that the user's preferences exclude, on either device. */
import { ALGORITHMS_OF, collnetForms } from '../../plan/possible.ts';
import type { CollnetName, RanksOfHosts } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences, AlgorithmAndProtocol } from '../input/preferences.ts';

const ALGORITHMS: Readonly<Record<CollectiveName, readonly AlgorithmName[]>> = {
  ...ALGORITHMS_OF,
  barrier: ['directOneShot'],
  sendRecv: ['directOneShot'],
};

interface Possible {
  /** Of the device, the one for all sizes first. */
  readonly protocols: readonly ProtocolName[];
  /** Whether rails can connect the hosts. */
  readonly rails: boolean;
}

/** What the device has: the first that the user prefers serves all sizes. */
export function possibleVariants(collective: CollectiveName, { protocols, rails }: Possible): AlgorithmAndProtocol[] {
  return ALGORITHMS[collective].flatMap((algorithm): AlgorithmAndProtocol[] => {
    if (algorithm === 'rail') return rails ? [{ algorithm, protocol: 'simple' }] : [];
    return protocols.map((protocol) => ({ algorithm, protocol }));
  });
}

/** The form in which the network is to reduce all-reduces; null: in none. */
export function collnetFormFor(
  extent: Omit<RanksOfHosts, 'maxRanks'>,
  { minCollnetHosts, algorithms }: Preferences,
): CollnetName | null {
  if (minCollnetHosts === null || extent.hosts < minCollnetHosts) return null;
  const wanted = algorithms.get('allReduce');
  return collnetForms(extent).find((form) => wanted?.has(form) ?? true) ?? null;
}

export function preferredVariant(
  collective: CollectiveName,
  best: AlgorithmAndProtocol,
  possible: Possible,
  preferences: Preferences,
): AlgorithmAndProtocol {
  if (isPreferred(collective, best, preferences)) return best;
  const others = possibleVariants(collective, possible).filter((variant) =>
    isPreferred(collective, variant, preferences),
  );
  return (
    others.find(({ algorithm }) => algorithm === best.algorithm) ??
    others.find(({ protocol }) => protocol === best.protocol) ??
    others[0] ??
    best // The preferences exclude every variant here, so they concern other collectives.
  );
}
