/** Which cards of a known topology may read and write the memory of its ranks' GPUs (GPUDirect). */
import type { GpuDirectVerdict, GpuNic } from '../../plan/gpu-nics.ts';
import { everyElement } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import { buildMachine } from '../machine/build.ts';
import type { NetNode } from '../machine/node.ts';
import { distance } from '../machine/path.ts';
import { MachineRoutes } from '../machine/routes.ts';
import type { RouteOptions } from '../machine/routes.ts';

/**
 * By distance alone: whether a card can at all is what its backend says, so that every net counts as if it could. No rank hands data on to
 * another one's card. `topology`: with ranks on its GPUs, by local index.
 */
export function gpuNicsOf(topology: Element, options: RouteOptions): GpuNic[] {
  // Paths as they are, none led through a processor because it may not be used.
  const all = { ...options, gpuDirectLevel: 'SYS', throughOtherNics: false } as const;
  const machine = buildMachine(asIfDirect(topology));
  const routes = new MachineRoutes(machine, all);
  const farthest = distance(options.gpuDirectLevel ?? 'P2C');
  const refusing = refusingRanks(topology);
  const cards = cardsOf(machine.nets);
  const [cpu] = machine.cpus;
  return machine.gpus
    .toSorted((one, other) => one.rank - other.rank)
    .flatMap((gpu) =>
      [...cards, null].map((one) => {
        // A card that is in no topology hangs on the first processor.
        const end = one?.net ?? cpu;
        const path = end === undefined ? 'SYS' : routes.path(gpu, end).type;
        const near: GpuDirectVerdict = distance(path) <= farthest ? 'allowed' : 'tooFar';
        const receives = refusing.has(gpu.rank) ? 'gpuRefuses' : near;
        const sends = receives === 'allowed' && !routes.mayRead(gpu) ? 'noReads' : receives;
        return { local: gpu.rank, card: one?.card ?? null, path, receives, sends };
      }),
    );
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
