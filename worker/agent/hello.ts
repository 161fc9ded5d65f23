/** What an agent says of its host first. */
import type { AgentHello, AgentOrder } from '../../control/messages/link.ts';
import type { Native } from '../engine/native.ts';
import type { InterfaceWishes } from '../topology/interfaces.ts';
import { hostFacts } from './host-facts.ts';

export function agentHello(order: AgentOrder, freePort: number, native: Native): AgentHello {
  const { version, jobId, hostName } = order;
  const isAlone = order.placement?.hostCount === 1;
  return {
    schemaVersion: 1,
    version,
    jobId,
    hostName,
    pid: process.pid,
    nodeVersion: process.version,
    freePort,
    ...hostFacts(isAlone, order.topology, interfaceWishes(order), order.verbs ? native : null),
  };
}

/** By which interfaces other hosts are to reach this one. */
export function interfaceWishes({ interfaces, addressFamily }: AgentOrder): InterfaceWishes {
  const { NCCL_SOCKET_IFNAME: names, NCCL_SOCKET_FAMILY: family } = process.env;
  return { names: interfaces ?? names, family: addressFamily ?? family };
}
