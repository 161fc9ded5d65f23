/** What GPUs have beside PCI Express: NVLinks to each other, to switches or to the processor, and NVLink-C2C. */
import * as attribute from '../../topology/attribute.ts';
import { elementsOf, everyElement, locationOf, TopologyError } from '../../topology/element.ts';
import type { Element } from '../../topology/element.ts';
import type { Builder } from './build.ts';
import { nvlinkTarget } from '../../topology/nvlink-target.ts';
import { nvlinkBandwidth } from './constants.ts';
import type { DraftNode } from './draft.ts';

export function connectGpus(builder: Builder, system: Element): void {
  const { byBusId, gpuOf, cpuOf, draft } = builder;
  let nvswitch: DraftNode | null = null;
  for (const pci of everyElement(system)) {
    for (const gpu of elementsOf(pci, 'gpu')) {
      const node = gpuOf.get(gpu);
      if (node?.facts.kind !== 'gpu') continue; // unused
      const cpu = cpuOf.get(node);
      const perLink = nvlinkBandwidth(node.facts.computeCapability);
      for (const link of elementsOf(gpu, 'nvlink')) {
        const bandwidth = attribute.whole(link, 'count') * perLink;
        const target = nvlinkTarget(link, (address) => byBusId.has(address));
        if (target === 'gpu') {
          const others = byBusId.get(attribute.busId(link, 'target')) ?? [];
          for (const other of others) draft.connect(node, other, 'nvlink', Math.floor(bandwidth / others.length));
        } else if (target === 'cpu') {
          if (cpu !== undefined) draft.join(node, cpu, 'nvlink', bandwidth);
        } else {
          nvswitch ??= draft.add({ kind: 'nvswitch', name: 'NVSwitch' });
          draft.join(node, nvswitch, 'nvlink', bandwidth);
        }
      }
      for (const link of elementsOf(gpu, 'c2c')) {
        if (cpu === undefined) throw new TopologyError(`${locationOf(link)}: stands under no <cpu>`);
        draft.join(node, cpu, 'c2c', attribute.whole(link, 'count') * attribute.whole(link, 'bw'));
      }
    }
  }
}
