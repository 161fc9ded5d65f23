/** Channels of messages between two ranks. */
import { nvlinkBandwidth } from '../machine/constants.ts';
import { mirrored } from '../machine/mirrored.ts';
import type { GpuNode } from '../machine/node.ts';
import type { MachineRoutes } from '../machine/routes.ts';
import type { Cluster } from './cluster.ts';

interface PointToPoint {
  /** Powers of two, of all peers together and of each. */
  readonly channels: number;
  readonly perPeer: number;
}

/** MB/s that a channel carries to the network. */
const NET_BANDWIDTH_OF_A_CHANNEL = 14_000;
/** Number of peers that a channel serves in one round. */
const PEERS_PER_ROUND = 8;
/** Of what is neither NVLink nor a network. */
const FEWEST = 2;

export function pointToPoint({ shapes, hosts, ranks, channels }: Cluster): PointToPoint {
  const all = powerOfTwo(channels);
  const wanted = shapes.flatMap(({ routes }) =>
    routes.machine.gpus.map((gpu) => channelsPerPeer(routes, gpu, hosts.length)),
  );
  let perPeer = Math.min(powerOfTwo(Math.min(...wanted)), all);
  if (hosts.length > 1) {
    // All peers in one round, where that is possible.
    while (perPeer > 1 && perPeer * Math.ceil(ranks / PEERS_PER_ROUND) > all) perPeer /= 2;
  }
  return { channels: all, perPeer };
}

/** What the worst of a GPU's peers wants. */
function channelsPerPeer(routes: MachineRoutes, gpu: GpuNode, hosts: number): number {
  const perLink = nvlinkBandwidth(gpu.computeCapability);
  const others = routes.machine.gpus.filter((other) => other !== gpu);
  const inside = others.map((other) => {
    const { type, bandwidth } = routes.path(other, gpu);
    return type === 'NVL' ? FEWEST * Math.max(1, Math.floor(bandwidth / perLink)) : FEWEST;
  });
  return Math.min(...inside, ...(hosts > 1 ? [channelsToNet(routes, gpu)] : []));
}

/** As many NICs as the GPU keeps busy over PCI Express, each with a channel at least. */
function channelsToNet(routes: MachineRoutes, gpu: GpuNode): number {
  const own = gpu.links.find(({ kind }) => kind === 'pci')?.bandwidth ?? 0;
  const toCpus = routes.machine.cpus.map((cpu) => routes.path(gpu, cpu).bandwidth);
  const link = Math.min(own, Math.max(0, ...toCpus));
  let nets = 0;
  let bandwidth = 0;
  for (const net of routes.nearest(gpu, routes.machine.nets)) {
    if (bandwidth >= link) break;
    bandwidth += routes.path(gpu, net).bandwidth;
    nets += 1;
  }
  return nets === 0
    ? FEWEST
    : Math.max(nets, Math.ceil(Math.floor(bandwidth / 1000) / (NET_BANDWIDTH_OF_A_CHANNEL / 1000)));
}

function powerOfTwo(min: number): number {
  return 2 ** Math.ceil(Math.log2(Math.max(1, min)));
}

/** A message's direction, as the rank sees it that asks. */
type Direction = 'sends' | 'receives';

/**
 * The rule by which two ranks agree on a channel without a word: with n ranks and c channels, what a rank receives from a peer has the distance
 * (n + rank - peer) mod n, what it sends to it (n - (rank - peer)) mod n; part p takes channel (distance + mirrored p) mod c.
 *
 * The channel of part `part` (0 to perPeer - 1) of what `rank` sends to or receives from `peer`; both come to the same one. Parts lie far apart, so that
 * messages to neighbouring ranks meet late.
 */
export function channelOfPair(
  { channels }: PointToPoint,
  ranks: number,
  [rank, peer]: readonly [number, number],
  direction: Direction,
  part: number,
): number {
  const distance = direction === 'receives' ? rank - peer : peer - rank;
  const delta = (ranks + distance) % ranks;
  return (delta + mirrored(part, channels)) % channels;
}
