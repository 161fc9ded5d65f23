/** How ranks of a machine reach each other and the network: direct paths where GPUs may use them, detours where not. */
import type { CpuNode, GpuNode, Machine, MachineNode, NetNode } from './node.ts';
import { mirrored } from './mirrored.ts';
import { distance, farther, NO_PATH, PATH_TYPES, PathsTo, reverseLinks } from './path.ts';
import type { Path, PathType, ReverseLinks } from './path.ts';

/** What a user may change; the names of the variables are NCCL's. */
export interface RouteOptions {
  /** GPUs reach each other directly up to this distance; null: PXB, or SYS with at most two GPUs under AMD's processors (NCCL_P2P_LEVEL). */
  readonly p2pLevel: PathType | null;
  /** NICs read and write GPUs' memory up to this distance; null: P2C (NCCL_NET_GDR_LEVEL). */
  readonly gpuDirectLevel: PathType | null;
  /** Whether NICs also read it: null: from compute capability 8.0 on, or where there are NVLinks (NCCL_NET_GDR_READ). */
  readonly gpuDirectRead: boolean | null;
  /** Not with NCCL_NVB_DISABLE=1. */
  readonly throughGpus: boolean;
  /** GPUs may use other GPUs' NICs; not with NCCL_PXN_DISABLE=1. */
  readonly throughOtherNics: boolean;
}

export const DEFAULT_ROUTES: RouteOptions = {
  p2pLevel: null,
  gpuDirectLevel: null,
  gpuDirectRead: null,
  throughGpus: true,
  throughOtherNics: true,
};

export class MachineRoutes {
  readonly machine: Machine;
  readonly #options: RouteOptions;
  /** The same links in the opposite direction. */
  readonly reverse: ReverseLinks;
  /** By index of the node where they end; undefined: none ends there. */
  readonly #paths: (PathsTo | undefined)[];
  readonly #localCpu = new Map<GpuNode, CpuNode>();
  readonly #relays = new Map<GpuNode, Map<NetNode, GpuNode>>();
  /** What localNets has found since paths have last changed. */
  readonly #localNets = new Map<GpuNode, NetNode[]>();

  constructor(machine: Machine, options: RouteOptions = DEFAULT_ROUTES) {
    this.machine = machine;
    this.#options = options;
    const { cpus, gpus, nets, nvswitch } = machine;
    this.reverse = reverseLinks(machine);
    this.#paths = machine.nodes.map(() => undefined);
    for (const node of [...cpus, ...gpus, ...nets, ...(nvswitch === null ? [] : [nvswitch])]) {
      this.#paths[node.index] = new PathsTo(node, machine, this.reverse, options.throughGpus);
    }
    for (const gpu of gpus) this.#findLocalCpu(gpu);
    const farthest = distance(this.#p2pLevel());
    for (const gpu of gpus) for (const other of gpus) this.#divertFarPeers(other, gpu, farthest);
    this.#preferC2c();
    for (const net of nets) {
      const local = options.throughOtherNics ? this.localGpu(net) : null;
      for (const gpu of gpus) this.#routeToNet(gpu, net, local);
    }
  }

  path(from: MachineNode, to: MachineNode): Path {
    const paths = this.#paths[to.index];
    if (paths === undefined) return NO_PATH;
    const middle = this.machine.nodes[paths.unwrittenMiddle(from)];
    if (middle !== undefined) paths.set(from, this.#throughPath(middle, from, to, paths));
    return paths.from(from);
  }

  #throughPath(middle: MachineNode, from: MachineNode, to: MachineNode, paths: PathsTo): Path {
    const links = this.path(from, middle).links.concat(this.path(middle, to).links);
    return { type: PATH_TYPES[paths.distance(from)] ?? 'DIS', bandwidth: paths.bandwidth(from), links };
  }

  /** As distance(path(from, to).type). */
  #distance(from: MachineNode, to: MachineNode): number {
    return this.#paths[to.index]?.distance(from) ?? distance('DIS');
  }

  /** As path(from, to).bandwidth. */
  #bandwidth(from: MachineNode, to: MachineNode): number {
    return this.#paths[to.index]?.bandwidth(from) ?? 0;
  }

  /** Those of `nodes` to which `from` has the widest, and then the nearest, paths. */
  nearest<Node extends MachineNode>(from: MachineNode, nodes: readonly Node[]): Node[] {
    let widest = 0;
    let min = distance('DIS');
    let near: Node[] = [];
    for (let i = 0; i < nodes.length; i++) {
      const node = nodes[i];
      if (node === undefined) continue;
      const bandwidth = this.#bandwidth(from, node);
      if (bandwidth < widest) continue;
      const far = this.#distance(from, node);
      if (bandwidth === widest && far === min) near.push(node);
      else if (bandwidth > widest || far < min) {
        widest = bandwidth;
        min = far;
        near = [node];
      }
    }
    return near;
  }

  /** Whether a NIC may move data of the GPU's memory without the host's; `reads`: from it. */
  usesGpuDirect(gpu: GpuNode, net: NetNode, reads: boolean): boolean {
    if (!net.gpuDirect || !gpu.gpuDirect) return false;
    if (reads && !this.mayRead(gpu)) return false;
    const far = this.#distance(this.relay(gpu, net) ?? gpu, net);
    return far <= this.farthestDirect;
  }

  /** Of the same machine: no path is led through a processor or another GPU because of what may not be used. */
  undiverted(): MachineRoutes {
    return new MachineRoutes(this.machine, { ...this.#options, gpuDirectLevel: 'SYS', throughOtherNics: false });
  }

  /** How far NICs may be from a GPU whose memory they read and write. */
  get farthestDirect(): number {
    return distance(this.#options.gpuDirectLevel ?? 'P2C');
  }

  /** The GPU that hands data of `gpu` on to a NIC (path type PXN); null: none does. */
  relay(gpu: GpuNode, net: NetNode): GpuNode | null {
    return this.#relays.get(gpu)?.get(net) ?? null;
  }

  /** Whether NICs read the GPU's memory, where they write it. */
  mayRead(gpu: GpuNode): boolean {
    if (this.#options.gpuDirectRead !== null) return this.#options.gpuDirectRead;
    if (gpu.computeCapability >= 80) return true;
    const { gpus } = this.machine;
    return gpus.length === 1 || gpus.some((other) => other !== gpu && this.#distance(gpu, other) === distance('NVL'));
  }

  #findLocalCpu(gpu: GpuNode): void {
    let best: CpuNode | undefined;
    let shortest = Number.POSITIVE_INFINITY;
    for (const cpu of this.machine.cpus) {
      const length = this.#paths[cpu.index]?.length(gpu) ?? 0;
      if (length === 0 || length >= shortest) continue;
      best = cpu;
      shortest = length;
    }
    if (best !== undefined) this.#localCpu.set(gpu, best);
  }

  /** Through memory of the processor next to the receiver. */
  #divertFarPeers(from: GpuNode, to: GpuNode, farthest: number): void {
    const cpu = this.#localCpu.get(to);
    if (from === to || cpu === undefined) return;
    if (this.#distance(from, to) > farthest) this.#goThrough(cpu, from, to);
  }

  #p2pLevel(): PathType {
    const { gpus, cpus } = this.machine;
    const isAmd = cpus[0]?.architecture === 'x86_64' && cpus[0].vendor === 'amd';
    return this.#options.p2pLevel ?? (isAmd && gpus.length <= 2 ? 'SYS' : 'PXB');
  }

  /** From a GPU to its own processor over C2C, and on to its NIC. */
  #preferC2c(): void {
    for (const gpu of this.machine.gpus) {
      const cpu = this.#localCpu.get(gpu);
      if (cpu === undefined || this.path(gpu, cpu).type !== 'C2C') continue;
      for (const net of this.nearest(gpu, this.machine.nets)) {
        if (this.path(net, cpu).type !== 'PHB') continue;
        this.#setType(gpu, net, nearer('P2C', this.path(gpu, net).type));
        this.#setType(net, gpu, nearer('P2C', this.path(net, gpu).type));
      }
    }
  }

  /** `local`: the GPU that uses the NIC first. */
  #routeToNet(gpu: GpuNode, net: NetNode, local: GpuNode | null): void {
    if (local !== null && local !== gpu) this.#goThroughOther(gpu, net, local);
    const cpu = this.#localCpu.get(gpu);
    if (cpu === undefined || this.#distance(gpu, net) >= distance('PHB')) return;
    if (this.usesGpuDirect(gpu, net, false)) return;
    this.#goThrough(cpu, net, gpu);
    this.#goThrough(cpu, gpu, net);
  }

  /** A GPU nearer to the NIC hands the data on, in this direction only: received is locally, sent remotely. */
  #goThroughOther(gpu: GpuNode, net: NetNode, other: GpuNode): void {
    if (!this.usesGpuDirect(other, net, true)) return;
    if (this.#distance(other, net) > distance('P2C') || this.#distance(other, gpu) > distance('NVL')) return;
    const isWider = this.#bandwidth(other, net) > this.#bandwidth(gpu, net);
    if (!isWider && this.#distance(gpu, net) <= distance('PXN')) return;
    this.#goThrough(other, gpu, net);
    const relays = this.#relays.get(gpu);
    if (relays === undefined) this.#relays.set(gpu, new Map([[net, other]]));
    else relays.set(net, other);
  }

  #goThrough(middle: GpuNode | CpuNode, from: GpuNode | NetNode, to: GpuNode | NetNode): void {
    const types = [this.#type(from, middle), this.#type(middle, to)] as const;
    const bandwidth = Math.min(this.#bandwidth(from, middle), this.#bandwidth(middle, to));
    this.#localNets.clear();
    this.#paths[to.index]?.divert(from, middle.index, middle.kind === 'gpu' ? 'PXN' : merged(...types), bandwidth);
  }

  #type(from: MachineNode, to: MachineNode): PathType {
    return PATH_TYPES[this.#distance(from, to)] ?? 'DIS';
  }

  #setType(from: MachineNode, to: MachineNode, type: PathType): void {
    this.#set(from, to, { ...this.path(from, to), type });
  }

  #set(from: MachineNode, to: MachineNode, path: Path): void {
    this.#localNets.clear();
    this.#paths[to.index]?.set(from, path);
  }

  /** The NICs that the GPU uses for its channels, one after the other and then from the first again: GPUs which share NICs begin with different ones. */
  localNets(gpu: GpuNode): NetNode[] {
    const known = this.#localNets.get(gpu);
    if (known !== undefined) return known;
    const found = this.#findLocalNets(gpu);
    this.#localNets.set(gpu, found);
    return found;
  }

  #findLocalNets(gpu: GpuNode): NetNode[] {
    const nets = this.nearest(gpu, this.machine.nets);
    const [first] = nets;
    if (first === undefined) return [];
    const sharers = this.nearest(first, this.machine.gpus).length;
    const start = isPowerOfTwo(nets.length) ? mirrored(gpu.device, nets.length) : gpu.device;
    const count = Math.ceil(nets.length / Math.max(sharers, 1));
    return Array.from({ length: count }, (_, index) => nets[(start + index) % nets.length] ?? first);
  }

  /** The GPU that uses this NIC first. */
  localGpu(net: NetNode): GpuNode | null {
    const near = this.nearest(net, this.machine.gpus).map((gpu) => ({ gpu, nets: this.localNets(gpu) }));
    let local: GpuNode | null = null;
    let earliest = Number.POSITIVE_INFINITY;
    for (const { gpu, nets } of near) {
      const index = nets.indexOf(net);
      if (index === -1 || index >= earliest) continue;
      local = gpu;
      earliest = index;
    }
    return local;
  }
}

function nearer(one: PathType, other: PathType): PathType {
  return distance(one) < distance(other) ? one : other;
}

function merged(one: PathType, other: PathType): PathType {
  const near = nearer(one, other);
  return near === 'C2C' && farther(one, other) === 'PHB' ? 'P2C' : farther(one, other);
}

function isPowerOfTwo(value: number): boolean {
  return (value & (value - 1)) === 0;
}
