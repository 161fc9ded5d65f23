/** What the engine has on each device; the native twin is native/plan/variants.cc, and a test compares both. */
import { MAX_GPUS } from './layout.ts';
import type { AlgorithmName, CollectiveName, DeviceName, Variant, TransportName } from './types.ts';

/** Algorithms that every device has, rails where hosts have equally many ranks (hasRails). Sends and receives have no choice, whatever the plan names. */
export const ALGORITHMS_OF: Readonly<Record<Exclude<CollectiveName, 'sendRecv'>, readonly AlgorithmName[]>> = {
  allReduce: ['ring', 'tree', 'directTwoShot', 'directOneShot', 'rail'],
  allGather: ['ring', 'directOneShot', 'rail'],
  reduceScatter: ['ring', 'directOneShot', 'rail'],
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
  if (isCollnet(algorithm))
    return collective === 'allReduce' && protocol === 'simple' && requires.includes('networkReduction');
  if (algorithm === 'rail' && protocol !== 'simple' && (device === 'host' || protocol !== 'll')) return false;
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

/** Whether rails can connect hosts that have so many ranks each; 0: they have unlike numbers. A block on a GPU has few connections. */
export function hasRails(device: DeviceName, { hosts, ranksOfEachHost }: Omit<RanksOfHosts, 'maxRanks'>): boolean {
  if (hosts < 2 || ranksOfEachHost < 2) return false;
  return device === 'host' || ranksOfEachHost + hosts - 2 <= MAX_GPUS;
}

/** The forms in which a network reduces. */
export type CollnetName = 'collnet' | 'collnetChain';

export function isCollnet(algorithm: AlgorithmName): algorithm is CollnetName {
  return algorithm === 'collnet' || algorithm === 'collnetChain';
}

/** The forms in which the network can reduce for hosts that have so many ranks each; 0: they have unlike numbers. The better one first. */
export function collnetForms({ hosts, ranksOfEachHost }: Omit<RanksOfHosts, 'maxRanks'>): readonly CollnetName[] {
  if (hosts < 2) return [];
  return ranksOfEachHost > 0 ? ['collnet', 'collnetChain'] : ['collnetChain'];
}

export interface RanksOfHosts {
  readonly hosts: number;
  /** 0: hosts have unlike numbers of them. */
  readonly ranksOfEachHost: number;
  readonly maxRanks: number;
}

export function countByHost(peers: readonly { readonly host: number }[], hosts: number): RanksOfHosts {
  const counts = new Uint32Array(hosts);
  for (const { host } of peers) counts[host] = (counts[host] ?? 0) + 1;
  return ranksOfHosts(counts);
}

/** `counts`: number of ranks by host. */
export function ranksOfHosts(counts: readonly number[] | Uint32Array): RanksOfHosts {
  let maxRanks = 0;
  let minRanks = Infinity;
  for (const count of counts) {
    maxRanks = Math.max(maxRanks, count);
    minRanks = Math.min(minRanks, count);
  }
  return { hosts: counts.length, ranksOfEachHost: minRanks === maxRanks ? maxRanks : 0, maxRanks };
}

/** Whether GPUs of several hosts carry the collective out as sends and receives, however many ranks there are. */
export function areMessagesBetweenGpuHosts(collective: CollectiveName): boolean {
  return ['allToAll', 'gather', 'scatter'].includes(collective);
}

/** GPUs of several hosts. Rings and rails have connections on all channels, other pairs on the first ones. */
interface GpuHosts {
  readonly ranks: number;
  readonly pairChannels: number;
}

type VariantBetweenGpuHosts = Pick<Variant, 'algorithm' | 'protocol' | 'requires' | 'asMessages' | 'channels'>;

/**
 * Whether GPUs of several hosts can carry out the collective by this variant. Proxies carry slots of protocol Simple and, over a network that
 * cannot reach a GPU's memory, LL. A barrier is a reduction there, whatever the plan names; messages take as many channels as pairs have.
 */
export function isVariantBetweenGpuHosts(
  collective: CollectiveName,
  { algorithm, protocol, requires, asMessages, channels }: VariantBetweenGpuHosts,
  { ranks, pairChannels }: GpuHosts,
): boolean {
  if (collective === 'barrier') return true;
  const isLL = protocol === 'll' && requires.includes('hostSlots');
  if ((protocol !== 'simple' && !isLL) || asMessages !== areMessagesBetweenGpuHosts(collective)) return false;
  if (asMessages || collective === 'sendRecv') return algorithm === 'directOneShot';
  if (isCollnet(algorithm)) return isVariantOf('cuda', collective, { algorithm, protocol, requires });
  if (!ALGORITHMS_OF[collective].includes(algorithm)) return false;
  // Rings have no slots of their own for LL: they use those of pairs.
  if (algorithm === 'ring') return !isLL || channels <= pairChannels;
  if (algorithm === 'rail') return true;
  return channels <= pairChannels && (algorithm === 'tree' || ranks <= MAX_GPUS);
}

/** Transports that the engine has between two ranks of a device: of one host, and of different ones. */
export const TRANSPORTS_OF: Readonly<
  Record<DeviceName, Readonly<Record<'sameHost' | 'otherHost', readonly TransportName[]>>>
> = {
  host: { sameHost: ['shm', 'socket', 'ib'], otherHost: ['socket', 'ib'] },
  cuda: { sameHost: ['p2p', 'shm'], otherHost: ['socket', 'ib'] },
};

/** Whether the engine can carry the collective out as sends and receives with blocks of their own. */
export function canBeMessages(
  device: DeviceName,
  collective: CollectiveName,
  { algorithm, protocol, requires = [] }: Pick<Variant, 'algorithm' | 'protocol'> & Partial<Pick<Variant, 'requires'>>,
): boolean {
  const hasProtocol = protocol === 'simple' || (protocol === 'll' && requires.includes('hostSlots'));
  const movesData = ['allToAll', 'allGather', 'broadcast', 'gather', 'scatter'].includes(collective);
  return device === 'cuda' && movesData && algorithm === 'directOneShot' && hasProtocol;
}
