/**
 * A host's topology for the planner. What a search finds there is remembered: it takes milliseconds. Loaded only where a topology is known, so
 * that other jobs start without the code of the search.
 */
import { withRanksOn, gpuElements, gpusByAddress } from '../topology/used-gpus.ts';
import type { Element } from '../topology/element.ts';
import { writeXml } from '../topology/write-xml.ts';
import { shapeOf } from './cluster/host-shape.ts';
import type { HostShape } from './cluster/host-shape.ts';
import { plannerWishes } from './environment.ts';
import type { HostMachine, UsesGpu } from './input.ts';
import { buildMachine } from './machine/build.ts';
import { Routes } from './machine/routes.ts';
import { graphsXml } from './search/graph-xml.ts';
import type { Environment } from './variables.ts';

const REMEMBERED = 64;

/** `graphs`: the <graphs> of NCCL_GRAPH_FILE, which take the place of a search. Throws UnplannableError for a wrong variable. */
export function knownMachine(system: Element, environment: Environment, graphs: Element | null): HostMachine {
  const known = new Map<string, HostShape>();
  const { routes, shape } = plannerWishes(environment);
  const find = (peers: readonly UsesGpu[], acrossHosts: boolean): HostShape | null => {
    const gpus = gpusOf(system, peers);
    if (gpus === null) return null;
    return shapeOf(new Routes(buildMachine(withRanksOn(system, gpus)), routes), acrossHosts, { ...shape, graphs });
  };
  return {
    key: writeXml(system),
    shape(peers, acrossHosts) {
      const name = `${acrossHosts} ${peers.map(({ device, busId }) => (device === 'cuda' ? busId : '')).join(' ')}`;
      const found = known.get(name) ?? find(peers, acrossHosts);
      if (found === null) return null;
      const [oldest] = known.keys();
      if (known.size >= REMEMBERED && oldest !== undefined) known.delete(oldest);
      known.set(name, found);
      return found;
    },
  };
}

/** As NCCL_GRAPH_DUMP_FILE has it. */
export function graphsOf({ routes, ring, tree, collnetChain, collnetDirect }: HostShape): string {
  return writeXml(graphsXml(routes.machine, { ring, tree, collnetChain, collnetDirect }));
}

/** On the host device ranks stand for the GPUs of a topology that the user gave, in its order. */
function gpusOf(system: Element, peers: readonly UsesGpu[]): Element[] | null {
  const onHosts = peers.some(({ device }) => device === 'host');
  const byAddress = onHosts ? null : gpusByAddress(system);
  const found =
    byAddress === null
      ? gpuElements(system).slice(0, peers.length)
      : peers.flatMap(({ busId }) => byAddress.get(Number.parseInt(busId, 16)) ?? []);
  return found.length === peers.length && new Set(found).size === found.length ? found : null;
}
