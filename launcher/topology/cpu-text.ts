/** Processors in words. */
import type { CpuNode } from '../../control/planner/machine/node.ts';
import { LOCAL_BANDWIDTH } from '../../control/planner/machine/constants.ts';
import type { Element } from '../../control/topology/element.ts';

const VENDORS = new Map([
  ['GenuineIntel', 'Intel'],
  ['AuthenticAMD', 'AMD'],
  ['CentaurHauls', 'Zhaoxin'],
  ['  Shanghai  ', 'Zhaoxin'],
]);

/** The kernel's -1 stands for a machine without NUMA nodes. */
export function cpuName({ numa }: CpuNode): string {
  return numa < 0 ? 'CPU' : `NUMA node ${numa}`;
}

/** "Intel x86_64, family 6, model 143" */
export function cpuModel({ attributes }: Element): string {
  const vendor = attributes.get('vendor');
  const family = attributes.get('familyid');
  const model = attributes.get('modelid');
  const kind = [vendor === undefined ? '' : (VENDORS.get(vendor) ?? vendor.trim()), attributes.get('arch') ?? ''];
  return [
    kind.filter((word) => word !== '').join(' '),
    ...(family === undefined ? [] : [`family ${family}`]),
    ...(model === undefined ? [] : [`model ${model}`]),
  ].join(', ');
}

/** To other NUMA nodes, in MB/s; null: nothing is known of such processors. */
export function socketRate({ socketBandwidth }: CpuNode): number | null {
  return socketBandwidth === LOCAL_BANDWIDTH ? null : socketBandwidth;
}
