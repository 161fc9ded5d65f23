/** Fills in the slots that only the hosts themselves know. */
import type { Allocation, HostSlots } from '../model/types.ts';

/** What an agent's hello says of its host. */
interface HostFacts {
  readonly cores: number;
  readonly gpus: number;
}

/** `facts` by host name; hosts with a stated count, and hosts without facts, stay as they are. */
export function withDetectedSlots(allocation: Allocation, facts: ReadonlyMap<string, HostFacts>): Allocation {
  return {
    hosts: allocation.hosts.map((host) => {
      const known = facts.get(host.name);
      return host.slots !== null || known === undefined ? host : fill(host, known);
    }),
  };
}

function fill(host: HostSlots, facts: HostFacts): HostSlots {
  const found = facts.gpus > 0 ? facts.gpus : (host.slotsWithoutGpus ?? facts.cores);
  const slots = Math.min(found, host.maxSlots ?? found);
  const others = host.slotsWithoutGpus === undefined ? `${facts.cores} cores` : `${host.slotsWithoutGpus} tasks`;
  const text = `${host.name} has ${facts.gpus > 0 ? `${facts.gpus} GPUs` : `${others} and no GPU`}`;
  return { ...host, slots, origin: { ...host.origin, text } };
}
