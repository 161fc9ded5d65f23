/** --port-range: how many ports the hosts of a job need at least. */
import { LAST_PORT, type PortRange, portRangeText, portsIn } from '../../control/port-range.ts';
import { mappedRanksByHost } from '../mapping/ranks-by-host.ts';
import type { Failure } from '../model/failure.ts';
import type { RankMap } from '../model/types.ts';

/** Of a rank that reaches other hosts: a communicator's, and a NIC's. */
const PORTS_OF_RANK = 2;

interface PortNeed {
  readonly portRange: PortRange | null;
  /** This machine plays all hosts. */
  readonly simulated: object | null;
}

/** A host has more ranks than the range can serve; null where it has not, or the number is not known yet. */
export function tooFewPorts({ portRange, simulated }: PortNeed, map: RankMap | null): Failure | null {
  if (portRange === null || map === null) return null;
  const byHost = mappedRanksByHost(map).map((ranks) => ranks.length);
  if (byHost.length < 2) return null; // ranks of one host meet in its memory
  const most = Math.max(...byHost);
  const ranks = simulated === null ? most : map.ranks.length;
  const host = simulated === null ? (map.hosts[byHost.indexOf(most)]?.name ?? '') : 'this machine';
  const needed = ranks * PORTS_OF_RANK;
  const ports = portsIn(portRange);
  if (ports >= needed) return null;
  return {
    type: 'usage',
    message: `--port-range ${portRangeText(portRange)} has ${ports} ports, and ${host} needs at least ${needed}: for each of its ${ranks} ranks one for each communicator and one for each NIC`,
    remedy: `write a range of ${needed} ports or more, such as --port-range ${suggested(portRange, needed)}`,
  };
}

/** A range of that size, from the same port if it fits. */
function suggested({ first }: PortRange, needed: number): string {
  const start = Math.min(first, LAST_PORT - needed + 1);
  return portRangeText({ first: start, last: start + needed - 1 });
}
