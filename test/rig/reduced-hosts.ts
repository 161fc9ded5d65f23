/** Hosts of processors for which a network may reduce, and the places of aggregators. */
import type { PlanInput } from '../../control/planner/input/input.ts';
import type { AggregatorPlace } from '../../control/planner/input/network-reduction.ts';
import { aggregatorsAt, processorsInput, UNKNOWN_HOST } from '../../launcher/plan/engine.ts';

/** 37.5 bytes per microsecond. */
export const SLOW_MBPS = 300;
export const member = (host: number): AggregatorPlace => ({ place: 'member', host });
export const other = (speedMbps: number, name = 'h5'): AggregatorPlace => ({ place: 'other', name, speedMbps });

/** Each host has eight cores, and one NIC that says so many Mb/s. */
export function reducedInput(
  ranks: number,
  hosts: number,
  aggregators: readonly AggregatorPlace[],
  speedMbps = SLOW_MBPS,
): PlanInput {
  const nic = {
    name: 'eth0',
    address: '192.0.2.1',
    prefixLength: 8,
    speedMbps,
    pciPath: null,
    isVirtual: false,
    isNamed: false,
  };
  return {
    ...processorsInput(ranks, hosts, { ...UNKNOWN_HOST, cores: 8, nics: [nic] }, null),
    aggregators: aggregatorsAt(aggregators),
  };
}
