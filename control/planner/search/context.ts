/** What all searches on one machine have in common, worked out once. */
import { distance } from '../machine/path.ts';
import type { PathType } from '../machine/path.ts';
import type { MachineRoutes } from '../machine/routes.ts';
import { SearchAttempts } from './attempts.ts';
import { Bounds } from './bounds.ts';
import { Candidates } from './candidates.ts';
import { NextGpus } from './next-gpus.ts';
import { usesOf } from './loads.ts';
import type { Use, Uses } from './loads.ts';

export class SearchContext {
  readonly routes: MachineRoutes;
  readonly uses: Uses;
  readonly bounds: Bounds;
  readonly nextGpus: NextGpus;
  readonly attempts = new SearchAttempts();
  /** MB/s of the links. */
  readonly bandwidths: Int32Array;
  /** MB/s of the NICs' ports, and the index of each net's port. */
  readonly ports: readonly number[];
  readonly portOf: readonly number[];
  /** By net: the GPU that uses it first, or -1; and all that are nearest, that one first. */
  readonly localGpus: readonly number[];
  readonly firstGpus: readonly (readonly number[])[];
  /** By GPU: the nets that it prefers for its channels. */
  readonly preferredNets: readonly (readonly number[])[];
  /** Of paths between GPUs, and between them and NICs: those that there are, the nearest first. */
  readonly distancesInside: readonly number[];
  readonly distancesBetween: readonly number[];
  /** Of the paths between NICs and their nearest GPUs. */
  readonly nearDistances: readonly number[];
  /** The least of all GPUs. */
  readonly computeCapability: number;
  readonly #candidates = new Map<number, Candidates>();

  constructor(routes: MachineRoutes) {
    const { machine } = routes;
    const { gpus, nets, links } = machine;
    this.routes = routes;
    this.uses = usesOf(routes);
    this.bounds = new Bounds(machine, this.uses);
    this.nextGpus = new NextGpus(machine, this.uses);
    this.bandwidths = new Int32Array(links.map(({ bandwidth }) => bandwidth));
    const names = [...new Set(nets.map(({ port }) => port))];
    this.ports = names.map((name) => nets.find(({ port }) => port === name)?.bandwidth ?? 0);
    this.portOf = nets.map(({ port }) => names.indexOf(port));
    const gpuIndex = new Map(gpus.map((gpu, index) => [gpu, index]));
    const nearest = nets.map((net) => routes.nearest(net, gpus).map((gpu) => gpuIndex.get(gpu) ?? 0));
    this.localGpus = nets.map((net) => {
      const gpu = routes.localGpu(net);
      return gpu === null ? -1 : (gpuIndex.get(gpu) ?? -1);
    });
    this.firstGpus = nearest.map((near, net) => {
      const local = this.localGpus[net] ?? -1;
      return local === -1 ? near : [local, ...near.filter((gpu) => gpu !== local)];
    });
    const netIndex = new Map(nets.map((net, index) => [net, index]));
    this.preferredNets = gpus.map((gpu) => routes.localNets(gpu).map((net) => netIndex.get(net) ?? 0));
    const { between, toNet, fromNet } = this.uses;
    this.nearDistances = nearest.flatMap((near, net) =>
      near.flatMap((gpu) => [
        fromNet[net * gpus.length + gpu]?.distance ?? 0,
        toNet[gpu * nets.length + net]?.distance ?? 0,
      ]),
    );
    this.distancesInside = distancesOf(between, [], 'LOC');
    this.distancesBetween = distancesOf(toNet, fromNet, 'PIX');
    this.computeCapability = Math.min(...gpus.map(({ computeCapability }) => computeCapability));
  }

  /** `distanceBetween`: the farthest NICs; `collnetOnly`: those that reduce. */
  candidates(distanceBetween: number, collnetOnly: boolean): Candidates {
    const doesLimit = collnetOnly && this.routes.machine.nets.some(({ collnet }) => !collnet);
    const key = distanceBetween * 2 + (doesLimit ? 1 : 0);
    const known = this.#candidates.get(key);
    if (known !== undefined) return known;
    const made = new Candidates(this, distanceBetween, doesLimit);
    this.#candidates.set(key, made);
    return made;
  }
}

/** All distances of such uses, the nearest first; of a node to itself it does not count. `otherwise`: there are no others. */
function distancesOf(uses: readonly Use[], others: readonly Use[], otherwise: PathType): number[] {
  const farthest = distance('SYS');
  const isThere = new Uint8Array(farthest + 1);
  for (const use of uses) isThere[Math.min(use.distance, farthest)] = 1;
  for (const use of others) isThere[Math.min(use.distance, farthest)] = 1;
  const all: number[] = [];
  for (let far = distance('LOC') + 1; far <= farthest; far++) if (isThere[far] === 1) all.push(far);
  return all.length === 0 ? [distance(otherwise)] : all;
}
