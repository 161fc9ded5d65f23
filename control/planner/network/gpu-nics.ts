/** Which cards of a known topology may read and write the memory of its ranks' GPUs (GPUDirect). */
import type { GpuDirectVerdict, GpuNic } from '../../plan/gpu-nics.ts';
import { everyElement } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import { buildMachine } from '../machine/build.ts';
import type { GpuNode, NetNode } from '../machine/node.ts';
import { distance } from '../machine/path.ts';
import { MachineRoutes } from '../machine/routes.ts';
import type { RouteOptions } from '../machine/routes.ts';

/**
 * By distance alone: whether a card can at all is what its backend says, so that every net counts as if it could. No rank hands data on to
 * another one's card. `topology`: with ranks on its GPUs, by local index.
 */
export function gpuNicsOf(topology: Element, options: RouteOptions): GpuNic[] {
  const machine = buildMachine(asIfDirect(topology));
  const used = new MachineRoutes(machine, options);
  const routes = used.undiverted();
  const farthest = used.farthestDirect;
  const refusing = refusingRanks(topology);
  const cards = cardsOf(machine.nets);
  return machine.gpus
    .toSorted((one, other) => one.rank - other.rank)
    .flatMap((gpu) =>
      [...cards, null].map((one) => {
        const isRefused = refusing.has(gpu.rank);
        return {
          local: gpu.rank,
          card: one?.card ?? null,
          ...verdict(routes, farthest, gpu, one?.net ?? null, isRefused),
        };
      }),
    );
}

/** `routes`: undiverted. `net` null: a card that is in no topology hangs on the first processor. */
export function verdict(
  routes: MachineRoutes,
  farthest: number,
  gpu: GpuNode,
  net: NetNode | null,
  isRefused: boolean,
): Pick<GpuNic, 'path' | 'receives' | 'sends'> {
  const end = net ?? routes.machine.cpus[0];
  const path = end === undefined ? 'SYS' : routes.path(gpu, end).type;
  const near: GpuDirectVerdict = distance(path) <= farthest ? 'allowed' : 'tooFar';
  const receives = isRefused ? 'gpuRefuses' : near;
  return { path, receives, sends: receives === 'allowed' && !routes.mayRead(gpu) ? 'noReads' : receives };
}

/** Each once; those that hang on a processor have no address. */
function cardsOf(nets: readonly NetNode[]): { readonly card: string; readonly net: NetNode }[] {
  const found = new Map<string, NetNode>();
  for (const net of nets) {
    const nic = net.links.find(({ to }) => to.kind === 'nic')?.to;
    const [, address] = /^NIC at ([0-9a-f]+:[0-9a-f]+:[0-9a-f]+)\.[0-9a-f]$/iu.exec(nic?.name ?? '') ?? [];
    const card = address === undefined ? null : `${address.toLowerCase()}.0`;
    if (card !== null && !found.has(card)) found.set(card, net);
  }
  return [...found].map(([card, net]) => ({ card, net }));
}

function refusingRanks(topology: Element): Set<number> {
  const gpus = [...everyElement(topology)].filter(({ name }) => name === 'gpu');
  const refusing = gpus.filter(({ attributes }) => Number(attributes.get('gdr') ?? 0) === 0);
  return new Set(refusing.map(({ attributes }) => Number(attributes.get('rank') ?? -1)));
}

function asIfDirect(from: Element): Element {
  const reaches = from.name === 'net' || from.name === 'gpu';
  return {
    ...from,
    attributes: reaches ? new Map(from.attributes).set('gdr', '1') : from.attributes,
    children: from.children.map((child) => (child.kind === 'element' ? asIfDirect(child) : child)),
  };
}
