/** The NICs of each kind of host: how ranks reach them, and which channels use them. */
import type { MachineRoutes } from '../../control/planner/machine/routes.ts';
import { verdict } from '../../control/planner/network/gpu-nics.ts';
import type { GpuNode, NetNode } from '../../control/planner/machine/node.ts';
import type { Graph } from '../../control/planner/search/graph.ts';

export interface NicView {
  /** Number in the topology. */
  readonly device: number;
  readonly name: string;
  /** Ports of one card, whose bandwidth they share, have equal ones. */
  readonly port: string;
  /** Number of the port on its card; 0: an interface, or the topology does not say. */
  readonly portNumber: number;
  /** By which a job would reach the port; null: it is none of this machine's InfiniBand or RoCE ports. */
  readonly gid: string | null;
  readonly speedMbps: number;
  /** PCI address of the card or the switch port above it; null: it hangs on a processor. */
  readonly pci: string | null;
  /** Ranks whose GPU memory the NIC writes, and of these, those whose memory it also reads. */
  readonly gpuDirect: readonly number[];
  readonly gpuDirectReads: readonly number[];
  readonly gpuDirectReason: string;
  readonly paths: readonly NicPathView[];
}

interface NicPathView {
  readonly rank: number;
  readonly type: string;
  /** GB/s. */
  readonly bandwidth: number;
}

/** Where a channel comes in or goes out, and why there. */
export interface ChannelNicView {
  readonly channel: number;
  readonly direction: 'in' | 'out';
  readonly nic: string;
  readonly rank: number;
  readonly type: string;
  readonly reason: string;
}

/** By card, a space and the port's number. */
export type PortGids = ReadonlyMap<string, string>;

const MBPS_PER_MB = 8;

/** As the engine uses them: no rank hands data on to another one's NIC. `gids`: of this machine's ports, where that is what is planned for. */
export function nicViews(routes: MachineRoutes, gids: PortGids): NicView[] {
  const { nets, gpus } = routes.machine;
  const undiverted = routes.undiverted();
  return nets.map((net) => {
    const verdictOf = (gpu: GpuNode): ReturnType<typeof verdict> =>
      verdict(undiverted, routes.farthestDirect, gpu, net, !gpu.gpuDirect);
    const direct = gpus.filter((gpu) => net.gpuDirect && verdictOf(gpu).receives === 'allowed');
    const reads = direct.filter((gpu) => verdictOf(gpu).sends === 'allowed');
    return {
      device: net.device,
      name: net.name,
      port: net.port,
      portNumber: portNumber(net),
      gid: gids.get(`${net.name} ${portNumber(net)}`) ?? null,
      speedMbps: net.bandwidth * MBPS_PER_MB,
      pci: pciOf(net),
      gpuDirect: direct.map(({ rank }) => rank),
      gpuDirectReads: reads.map(({ rank }) => rank),
      gpuDirectReason: reasonOf(net, direct, gpus),
      paths: gpus.map((gpu) => {
        const { type, bandwidth } = routes.path(gpu, net);
        return { rank: gpu.rank, type, bandwidth: bandwidth / 1000 };
      }),
    };
  });
}

/** Behind the card. */
function portNumber({ port }: NetNode): number {
  return Number(port.slice(port.lastIndexOf('/') + 1));
}

function pciOf(net: NetNode): string | null {
  const card = net.links.find(({ to }) => to.kind === 'nic')?.to;
  return card?.links.find(({ to }) => to.kind === 'pci')?.to.name ?? null;
}

function reasonOf(net: NetNode, direct: readonly GpuNode[], gpus: readonly GpuNode[]): string {
  if (!net.gpuDirect) return 'the NIC does not reach GPU memory (gdr="0")';
  if (direct.length > 0) return 'near enough';
  return gpus.some(({ gpuDirect }) => gpuDirect)
    ? 'every GPU is too far away (NCCL_NET_GDR_LEVEL)'
    : 'no GPU lets NICs reach its memory (gdr="0")';
}

/** Inside one host no channel uses a NIC. */
export function channelNics({ channels }: Graph, routes: MachineRoutes): ChannelNicView[] {
  const { gpus, nets } = routes.machine;
  return channels.flatMap(({ order, nets: used }, channel) => {
    if (used === null) return [];
    const ends = [
      ['in', gpus[order[0] ?? 0], nets[used[0]]],
      ['out', gpus[order.at(-1) ?? 0], nets[used[1]]],
    ] as const;
    return ends.flatMap(([direction, gpu, net]) => {
      if (gpu === undefined || net === undefined) return [];
      const { type } = routes.path(gpu, net);
      return [{ channel, direction, nic: net.name, rank: gpu.rank, type, reason: whyThis(routes, gpu, net) }];
    });
  });
}

function whyThis(routes: MachineRoutes, gpu: GpuNode, net: NetNode): string {
  const [first, ...others] = routes.nearest(gpu, routes.machine.nets);
  if (first === undefined || (first !== net && !others.includes(net)))
    return `${first?.name ?? 'another'} is nearer, and taken`;
  return others.length === 0 ? 'the nearest' : `one of ${others.length + 1} nearest`;
}
