/** What the engine has on each device; the native twin is native/plan/variants.cc, and a test compares both. */
import type { AlgorithmName, CollectiveName, DeviceName, Variant, TransportName } from './types.ts';

/** Algorithms that every device has. Sends and receives have no choice, whatever the plan names. */
export const ALGORITHMS_OF: Readonly<Record<Exclude<CollectiveName, 'sendRecv'>, readonly AlgorithmName[]>> = {
  allReduce: ['ring', 'tree', 'directTwoShot', 'directOneShot'],
  allGather: ['ring', 'directOneShot'],
  reduceScatter: ['ring', 'directOneShot'],
  broadcast: ['ring', 'tree', 'directOneShot'],
  reduce: ['ring', 'tree', 'directOneShot'],
  allToAll: ['directOneShot'],
  gather: ['directOneShot'],
  scatter: ['directOneShot'],
  barrier: ['ring', 'directOneShot'],
};

/** Whether the device can carry out the collective by this variant. */
export function isVariantOf(
  device: DeviceName,
  collective: CollectiveName,
  { algorithm, protocol, requires }: Pick<Variant, 'algorithm' | 'protocol' | 'requires'>,
): boolean {
  if (device === 'host') {
    // Sends and receives meet by their order alone: the two sides must not choose a protocol by different sizes.
    const protocols = collective === 'sendRecv' ? ['simple'] : ['simple', 'll'];
    if (!protocols.includes(protocol)) return false;
  }
  if (algorithm === 'copyEngine') {
    const agreed = requires.includes('publishedAddresses');
    return device === 'cuda' && agreed && collective !== 'reduce' && collective !== 'barrier';
  }
  return collective === 'sendRecv' || ALGORITHMS_OF[collective].includes(algorithm);
}

const BY_RINGS: readonly CollectiveName[] = ['allReduce', 'allGather', 'reduceScatter', 'broadcast', 'reduce'];

/** The algorithm between GPUs of several hosts, whose proxies carry slots of protocol Simple. */
export function algorithmBetweenGpuHosts(collective: CollectiveName): AlgorithmName {
  return BY_RINGS.includes(collective) ? 'ring' : 'directOneShot';
}

/** Whether GPUs of several hosts can carry out the collective by this variant. A barrier is a reduction there, whatever the plan names. */
export function isVariantBetweenGpuHosts(
  collective: CollectiveName,
  { algorithm, protocol, asMessages }: Pick<Variant, 'algorithm' | 'protocol' | 'asMessages'>,
): boolean {
  if (collective === 'barrier') return true;
  return protocol === 'simple' && !asMessages && algorithm === algorithmBetweenGpuHosts(collective);
}

/** Transports that the engine has between two ranks of a device: of one host, and of different ones. */
export const TRANSPORTS_OF: Readonly<
  Record<DeviceName, Readonly<Record<'sameHost' | 'otherHost', readonly TransportName[]>>>
> = {
  host: { sameHost: ['shm', 'socket'], otherHost: ['socket'] },
  cuda: { sameHost: ['p2p', 'shm'], otherHost: ['socket'] },
};

/** Whether the engine can carry the collective out as sends and receives with blocks of their own. */
export function canBeMessages(
  device: DeviceName,
  collective: CollectiveName,
  { algorithm, protocol }: Pick<Variant, 'algorithm' | 'protocol'>,
): boolean {
  const movesData = collective === 'allToAll' || collective === 'allGather' || collective === 'broadcast';
  return device === 'cuda' && movesData && algorithm === 'directOneShot' && protocol === 'simple';
}
