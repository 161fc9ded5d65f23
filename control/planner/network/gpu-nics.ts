/** Which cards of a known topology may read and write the memory of its ranks' GPUs (GPUDirect). */
import type { GpuNic } from '../../plan/gpu-nics.ts';
import type { Element } from '../../topology/element.ts';
import { MachineRoutes } from '../machine/routes.ts';
import type { RouteOptions } from '../machine/routes.ts';
import type { GpuNode, NetNode } from '../machine/node.ts';
import { buildMachine } from '../machine/build.ts';

/**
 * By distance alone: whether a card can at all is what its backend says, so that every net counts as if it could. No rank hands data on to
 * another one's card. `topology`: with ranks on its GPUs, by local index.
 */
export function gpuNicsOf(topology: Element, options: RouteOptions): GpuNic[] {
  const machine = buildMachine(asIfDirect(topology));
  const routes = new MachineRoutes(machine, { ...options, throughOtherNics: false });
  const gpus = machine.gpus.toSorted((one, other) => one.rank - other.rank);
  const cards = new Map<string, NetNode>();
  for (const net of machine.nets) {
    const card = cardOf(net);
    if (card !== null && !cards.has(card)) cards.set(card, net);
  }
  return gpus.flatMap((gpu) => [
    ...[...cards].map(([card, net]) => gpuNic(routes, gpu, net, card)),
    gpuNic(routes, gpu, null, null),
  ]);
}

function gpuNic(routes: MachineRoutes, gpu: GpuNode, net: NetNode | null, card: string | null): GpuNic {
  const { path, receives, sends } = routes.gpuDirect(gpu, net);
  return { local: gpu.rank, card, path, receives, sends };
}

/** null: it hangs on a processor. */
function cardOf(net: NetNode): string | null {
  const nic = net.links.find(({ to }) => to.kind === 'nic')?.to;
  const [, address = null] = /^NIC at ([0-9a-f]+:[0-9a-f]+:[0-9a-f]+)\.[0-9a-f]$/iu.exec(nic?.name ?? '') ?? [];
  return address === null ? null : `${address.toLowerCase()}.0`;
}

function asIfDirect(from: Element): Element {
  const attributes = from.name === 'net' ? new Map(from.attributes).set('gdr', '1') : from.attributes;
  return {
    ...from,
    attributes,
    children: from.children.map((child) => (child.kind === 'element' ? asIfDirect(child) : child)),
  };
}
