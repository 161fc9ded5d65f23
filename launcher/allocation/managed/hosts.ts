/** The hosts of a resource manager's allocation. */
import type { HostSlots } from '../../model/types.ts';
import { addUp, type Hosts } from '../slots/add-up.ts';
import type { HostEntry } from '../grammar/entry.ts';
import type { LauncherMachine } from '../grammar/machine.ts';
import { positionIn, type SourceLine } from '../grammar/diagnostic.ts';
import { parseHostWord } from '../grammar/host-name.ts';
import type { Reading } from '../grammar/reading.ts';
import type { Token } from '../grammar/tokenize.ts';
import { lsfHosts } from './lsf.ts';
import type { Manager, ManagerName } from './manager.ts';
import { pbsHosts } from './pbs.ts';
import { slurmHosts } from './slurm.ts';

/** What a manager says. `why`: where the numbers of slots come from; null: they are as stated. */
export interface ManagedHosts {
  readonly entries: readonly HostEntry[];
  readonly why: string | null;
  /** How many slots a host without GPUs has, by its name, where that is not stated. */
  readonly withoutGpus?: ReadonlyMap<string, number>;
  /** About GPUs, by the name of the host. */
  readonly gpus?: (host: string) => Pick<HostSlots, 'gpuOption' | 'gpuCount' | 'taskGpus'>;
}

const readers: Readonly<Record<ManagerName, (manager: Manager, machine: LauncherMachine) => ManagedHosts>> = {
  slurm: slurmHosts,
  pbs: pbsHosts,
  lsf: lsfHosts,
};

/** Throws a FailureError (hostfile) that names the variable and the place in it. */
export function managedHosts(manager: Manager, machine: LauncherMachine): Hosts {
  const { entries, why, withoutGpus, gpus } = readers[manager.name](manager, machine);
  const { hosts, leftOut } = addUp(entries, machine);
  const isSlurm = manager.name === 'slurm';
  return {
    hosts: hosts.map((host) => ({
      ...host,
      origin: why === null ? host.origin : { ...host.origin, text: why },
      // All of a Slurm job is in its steps, which scancel ends: its agents too, wherever we are.
      ...(isSlurm ? { local: false, manager: manager.name } : {}),
      ...gpus?.(host.name),
      ...(host.slots === null && withoutGpus !== undefined
        ? { slotsWithoutGpus: withoutGpus.get(host.name) ?? 1 }
        : {}),
    })),
    leftOut,
  };
}

/** One name, or a range of them, with the slots of each. Throws a FailureError (hostfile) for what is no name. */
export function mentions(token: Token, slots: number | null, line: SourceLine, reading: Reading): HostEntry[] {
  const { names, range } = parseHostWord(token, line, reading);
  const position = positionIn(line, token.offset, token.text.length);
  return names.map((name) => ({ kind: 'use', name, user: null, port: null, slots, maxSlots: null, range, position }));
}
