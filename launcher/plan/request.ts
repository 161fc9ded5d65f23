/** From the words of `ncclrun plan` to what is to be planned. */
import type { HostGroup } from '../../control/planner/cluster/plan-cluster.ts';
import type { Element } from '../../control/topology/element.ts';
import { gpuElements } from '../../control/topology/used-gpus.ts';
import { usageError } from '../model/usage-error.ts';
import { parseBytes } from '../model/values.ts';
import { readUserTopologyFile } from '../topology/file.ts';
import { counted } from '../text/counted.ts';

interface Wanted {
  readonly topologies: readonly string[];
  readonly nodes: number | null;
  readonly ranks: number | null;
  /** Hosts that one machine plays. */
  readonly simulated?: number | null;
}

/** `own`: the topology of this machine, where no file is given. Throws a FailureError (usage). */
export function hostGroups({ topologies, nodes, ranks, simulated = null }: Wanted, own: Element | null): HostGroup[] {
  if (simulated !== null) {
    if (nodes !== null)
      throw usageError('--nodes and --simulate-hosts both say how many hosts there are', 'leave one of them out');
    const [machine, ...others] = hostGroups({ topologies, nodes, ranks: null }, own);
    if (machine === undefined || machine.hosts > 1 || others.length > 0)
      throw usageError('--simulate-hosts with several hosts', 'give one topology, of the machine that plays hosts');
    return spread([{ ...machine, hosts: simulated }], ranks ?? gpuElements(machine.system).length);
  }
  const given = topologies.map((word) => {
    const [, path = word, count] = /^(.+):([0-9]{1,7})$/u.exec(word) ?? [];
    if (count !== undefined && Number(count) === 0)
      throw usageError(`--topo ${word}: 0 hosts`, 'give a number of hosts from 1 on, or leave the topology out');
    if (count !== undefined && nodes !== null)
      throw usageError(
        `--topo ${word} and --nodes ${nodes} both say how many hosts there are`,
        'leave one of them out',
      );
    return { system: readUserTopologyFile(path).root, hosts: count === undefined ? null : Number(count) };
  });
  if (given.length > 1 && nodes !== null) {
    throw usageError(
      `--nodes ${nodes} with ${given.length} topologies`,
      'give each its number: --topo A.xml:2 --topo B.xml:3',
    );
  }
  const all = own === null ? given : [{ system: own, hosts: nodes }];
  for (const { system } of all) {
    if (gpuElements(system).length > 0) continue;
    const whose = own === null ? 'the topology' : 'this machine';
    throw usageError(`${whose} has no GPU that ranks could use`, 'give the topology of hosts with GPUs: --topo FILE');
  }
  const groups = all.map(({ system, hosts }) => ({ system, hosts: hosts ?? nodes ?? 1, ranksPerHost: null }));
  return ranks === null ? groups : spread(groups, ranks);
}

/** The first hosts get one more where they do not come out even. */
function spread(groups: readonly HostGroup[], ranks: number): HostGroup[] {
  const hosts = groups.reduce((sum, group) => sum + group.hosts, 0);
  const fewest = Math.floor(ranks / hosts);
  if (fewest === 0)
    throw usageError(
      `${ranks} ranks for ${hosts} hosts`,
      'each host has at least one rank: give more ranks or fewer nodes',
    );
  let more = ranks % hosts;
  return groups.flatMap(({ system, hosts: count }) => {
    const gpus = gpuElements(system).length;
    const fuller = Math.min(more, count);
    more -= fuller;
    const max = fuller > 0 ? fewest + 1 : fewest;
    if (max > gpus)
      throw usageError(
        `${ranks} ranks on ${counted(hosts, 'host')} are ${max} on a host with ${gpus} GPUs`,
        'give more nodes or fewer ranks',
      );
    const parts = [
      { system, hosts: fuller, ranksPerHost: fewest + 1 },
      { system, hosts: count - fuller, ranksPerHost: fewest },
    ];
    return parts.filter((part) => part.hosts > 0);
  });
}

/** `8..8G`, `1M`: powers of two times the first. */
export function sizesOf(text: string): number[] {
  const [from = '', to = from, ...rest] = text.split('..');
  const first = parseBytes(from);
  const last = parseBytes(to);
  if (first === null || last === null || rest.length > 0 || first < 1 || last < first) {
    throw usageError(`--bytes is "${text}"`, 'a size or a range is wanted, such as 1M or 8..8G');
  }
  const sizes: number[] = [];
  for (let size = first; size <= last; size *= 2) sizes.push(size);
  return sizes;
}
