/** Replaces a choice that the user's preferences exclude, on either device. */
import { ALGORITHMS_OF } from '../../plan/possible.ts';
import type { AlgorithmName, CollectiveName, ProtocolName } from '../../plan/types.ts';
import { isPreferred } from '../input/preferences.ts';
import type { Preferences, AlgorithmAndProtocol } from '../input/preferences.ts';

/** What the devices have, beside what the sizes make best: the first that the user prefers serves all sizes. */
export const POSSIBLE: Readonly<Record<CollectiveName, readonly AlgorithmName[]>> = {
  ...ALGORITHMS_OF,
  barrier: ['directOneShot'],
  sendRecv: ['directOneShot'],
};

/** `protocols`: of the device, the one for all sizes first. */
export function preferredVariant(
  collective: CollectiveName,
  best: AlgorithmAndProtocol,
  protocols: readonly ProtocolName[],
  preferences: Preferences,
): AlgorithmAndProtocol {
  if (isPreferred(collective, best, preferences)) return best;
  const others = POSSIBLE[collective]
    .flatMap((algorithm) => protocols.map((protocol): AlgorithmAndProtocol => ({ algorithm, protocol })))
    .filter((variant) => isPreferred(collective, variant, preferences));
  return (
    others.find(({ algorithm }) => algorithm === best.algorithm) ??
    others.find(({ protocol }) => protocol === best.protocol) ??
    others[0] ??
    best // The preferences exclude every variant here, so they concern other collectives.
  );
}
