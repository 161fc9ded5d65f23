/** The hosts of a batch: how many slots each has for tasks. */
import { availableParallelism } from 'node:os';
import type { HostCapacity } from '../../batch/model/capacity.ts';
import { localHostFacts } from '../../local/host.ts';
import type { BatchSpec } from '../../batch/model/spec.ts';
import type { HostSlots } from '../../model/types.ts';
import { usageError } from '../../model/usage-error.ts';

/** Throws a FailureError (usage) for a job that names the kind of its GPUs: which hosts have those is not known here. */
export function refuseGpuModels({ jobs }: BatchSpec): void {
  const job = jobs.find(({ demand }) => demand.gpuModel !== undefined);
  if (job === undefined) return;
  throw usageError(
    `${job.name} (line ${job.line}) asks for GPUs of the kind ${job.demand.gpuModel ?? ''}, and a hostfile does not say who has those`,
    'write hosts: node[1-4] in its place',
  );
}

/** Throws a FailureError (usage) for a host of which nobody knows how many slots it has. */
export function capacitiesOf(hosts: readonly HostSlots[]): HostCapacity[] {
  const unknown = hosts.filter((host) => host.slots === null && host.devices === null && !host.local);
  const [first] = unknown;
  if (first !== undefined)
    throw usageError(
      `a batch needs to know how many slots ${first.name} has`,
      'write slots=8 behind it in the hostfile, or node1:8 with -H',
    );
  return hosts.map((host) => {
    const slots = slotsOf(host);
    // Who gives a host more slots than it has processors means that many ranks.
    const cpus = host.local ? Math.max(availableParallelism(), slots.length) : null;
    return { name: host.name, slots, cpus, memoryBytes: null };
  });
}

function slotsOf(host: HostSlots): readonly number[] {
  if (host.devices !== null) return host.devices;
  return Array.from({ length: host.slots ?? localSlots() }, (_, slot) => slot);
}

function localSlots(): number {
  const { gpus, cores } = localHostFacts();
  return gpus > 0 ? gpus : cores;
}
