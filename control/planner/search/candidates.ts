/** Where channels may come in and go out, and in which order a search tries that: the most promising first, since its work is bounded. */
import type { NextGpus } from './next-gpus.ts';
import type { Uses } from './loads.ts';
import type { SearchContext } from './context.ts';

/** Numbers are indices in the machine's lists of GPUs and nets. */
export class Candidates {
  readonly gpus: number;
  readonly nets: number;
  readonly hasSwitch: boolean;
  readonly uses: Uses;
  readonly nextGpus: NextGpus;
  readonly bandwidths: Int32Array;
  readonly ports: readonly number[];
  readonly portOf: readonly number[];
  /** MB/s of those by which channels may come in. */
  readonly usedPorts: readonly number[];
  /** Where channels come in. */
  readonly startNets: readonly number[];
  /** By net: the GPU that uses it first, or -1; and all that are nearest, that one first. */
  readonly localGpus: readonly number[];
  readonly firstGpus: readonly (readonly number[])[];
  readonly #netsOf: readonly (readonly number[])[];
  readonly #distanceBetween: number;
  #mayRingsReturn: boolean | null = null;

  /** `distanceBetween`: the farthest NICs; `collnetOnly`: those that reduce. */
  constructor(context: SearchContext, distanceBetween: number, collnetOnly: boolean) {
    const { routes, uses, nextGpus, bandwidths, ports, portOf, localGpus, firstGpus } = context;
    const { gpus, nets, nvswitch } = routes.machine;
    this.#distanceBetween = distanceBetween;
    this.gpus = gpus.length;
    this.nets = nets.length;
    this.hasSwitch = nvswitch !== null;
    this.uses = uses;
    this.nextGpus = nextGpus;
    this.bandwidths = bandwidths;
    this.ports = ports;
    this.portOf = portOf;
    this.localGpus = localGpus;
    this.firstGpus = firstGpus;
    const order = (of: readonly number[]): number[] => {
      const ordered = orderedNets(context, of, distanceBetween);
      return collnetOnly ? ordered.filter((net) => nets[net]?.collnet ?? false) : ordered;
    };
    this.startNets = order(gpus.map((_, gpu) => gpu));
    this.usedPorts = [...new Set(this.startNets.map((net) => portOf[net] ?? 0))].map((port) => ports[port] ?? 0);
    this.#netsOf = gpus.map((_, gpu) => order([gpu]));
  }

  /** Whether there is a port by which a ring may come in at one GPU and go out from another. */
  get mayRingsReturn(): boolean {
    return (this.#mayRingsReturn ??= this.startNets.some((net) => this.#hasBothDirections(this.portOf[net] ?? 0)));
  }

  #hasBothDirections(port: number): boolean {
    const { fromNet, toNet } = this.uses;
    const far = this.#distanceBetween;
    let enters = -1;
    let leaves = -1;
    for (let gpu = 0; gpu < this.gpus; gpu++) {
      let comesIn = false;
      let goesOut = false;
      for (let net = 0; net < this.nets; net++) {
        if (this.portOf[net] !== port) continue;
        comesIn ||= (fromNet[net * this.gpus + gpu]?.distance ?? far + 1) <= far;
        goesOut ||= (toNet[gpu * this.nets + net]?.distance ?? far + 1) <= far;
      }
      if ((comesIn && leaves !== -1) || (goesOut && enters !== -1)) return true;
      if (comesIn) enters = gpu;
      if (goesOut) leaves = gpu;
    }
    return this.gpus < 2;
  }

  /** Where a channel may go out from a GPU. */
  netsOf(gpu: number): readonly number[] {
    return this.#netsOf[gpu] ?? [];
  }
}

/** Those that each GPU prefers, GPU by GPU; then all others, the nearest first. */
function orderedNets(
  { preferredNets, uses, portOf }: SearchContext,
  gpus: readonly number[],
  farthest: number,
): number[] {
  const nets = portOf.length;
  const ordered: number[] = [];
  const isFound = new Uint8Array(nets);
  const add = (net: number): void => {
    if (isFound[net] === 0) ordered.push(net);
    isFound[net] = 1;
  };
  for (const gpu of gpus) for (const net of preferredNets[gpu] ?? []) add(net);
  for (let far = 0; far <= farthest && ordered.length < nets; far++) {
    for (const gpu of gpus) {
      for (let net = 0; net < nets; net++) if (uses.toNet[gpu * nets + net]?.distance === far) add(net);
    }
  }
  return ordered;
}
