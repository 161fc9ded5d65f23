/** How many ranks a job has and where they go: worked out from what the file says, and checked against all of it. */
import { parseBytes } from '../../model/values.ts';
import { counted } from '../../text/counted.ts';
import type { Demand } from '../model/spec.ts';
import { readGpus, type Gpus } from './gpus.ts';
import { readHosts } from './hosts.ts';
import { mistakeIn, type JobSource } from './job-source.ts';

/** Throws a FailureError (usage) for what contradicts itself, with the arithmetic. */
export function readDemand(job: JobSource): Demand {
  const { raw } = job;
  const gpus = readGpus(job);
  const size = readSize(job, gpus);
  const hosts = readHosts(job, 'hosts');
  const exclude = new Set(readHosts(job, 'exclude'));
  const usable = hosts?.filter((host) => !exclude.has(host)) ?? null;
  if (usable !== null && usable.length < (size.nodes ?? 1)) {
    const left = exclude.size === 0 ? '' : ' beside those of exclude';
    const wanted = `the job wants ${counted(size.nodes ?? 1, 'host')}`;
    const message = `${wanted}, and "hosts" names ${usable.length === 0 ? 'none' : usable.length}${left}`;
    throw mistakeIn(job, 'hosts', message, 'name more hosts, or leave hosts out');
  }
  return {
    ...size,
    takesSlots: gpus.wanted,
    cpusPerRank: raw.cpus_per_task ?? cpusOfResources(job, size),
    memoryBytes: readMemory(job),
    exclusive: raw.exclusive ?? false,
    hosts: hosts === null ? null : [...new Set(hosts)],
    exclude: [...exclude],
    ...(gpus.model === null ? {} : { gpuModel: gpus.model }),
    ...(gpus.wanted && gpus.words !== '' ? { asksGpus: true } : {}),
  };
}

interface Size {
  readonly ranks: number;
  readonly nodes: number | null;
  readonly ranksPerNode: number | null;
}

function readSize(job: JobSource, gpus: Gpus): Size {
  const { ntasks, nodes, ntasks_per_node: perNode } = job.raw;
  const perNodeGpus = gpus.wanted ? gpus.perNode : null;
  const allGpus = gpus.wanted ? gpus.inAll : null;
  if (perNode !== undefined && perNodeGpus !== null && perNode !== perNodeGpus) {
    const remedy = `each rank has one GPU: write ${perNodeGpus} for both, or leave ntasks_per_node out`;
    throw mistakeIn(job, 'ntasks_per_node', `${perNode} ranks and ${perNodeGpus} GPUs on each host`, remedy);
  }
  if (ntasks !== undefined && allGpus !== null && ntasks !== allGpus) {
    const remedy = `each rank has one GPU: write ${allGpus} for both, or leave ntasks out`;
    throw mistakeIn(job, 'ntasks', `${ntasks} ranks and ${allGpus} GPUs`, remedy);
  }
  const each = perNode ?? perNodeGpus;
  const all = ntasks ?? allGpus;
  if (all === null || all === undefined) {
    const count = nodes ?? 1;
    if (each !== null) return { ranks: checkedRanks(job, count, each), nodes: count, ranksPerNode: each };
    return nodes === undefined
      ? { ranks: 1, nodes: null, ranksPerNode: null }
      : { ranks: nodes, nodes, ranksPerNode: 1 };
  }
  const key = ntasks === undefined ? 'gpus' : 'ntasks';
  if (each !== null) return dividedSize(job, key, all, each, nodes);
  if (nodes === undefined) return { ranks: all, nodes: null, ranksPerNode: null };
  if (all >= nodes) return { ranks: all, nodes, ranksPerNode: null };
  throw mistakeIn(
    job,
    key,
    `${all} ranks on ${nodes} hosts leave ${nodes - all} of them without one`,
    `write nodes: ${all}`,
  );
}

/** `all` ranks, `each` on a host. */
function dividedSize(job: JobSource, key: string, all: number, each: number, nodes: number | undefined): Size {
  const hosts = Math.ceil(all / each);
  if (nodes === undefined && all % each === 0) return { ranks: all, nodes: hosts, ranksPerNode: each };
  if (nodes === undefined) {
    const message = `${all} ranks at ${each} on each host leave ${all % each} for the last one: ${hosts} x ${each} = ${hosts * each}`;
    throw mistakeIn(
      job,
      key,
      message,
      `write ${hosts * each} ranks, or nodes: ${hosts} in place of the number on each host`,
    );
  }
  if (nodes * each === all) return { ranks: all, nodes, ranksPerNode: each };
  const message = `${all} ranks on ${nodes} hosts at ${each} on each: ${nodes} x ${each} = ${nodes * each}`;
  const other = all % each === 0 ? `write nodes: ${hosts}, or ${nodes * each} ranks` : `write ${nodes * each} ranks`;
  throw mistakeIn(job, key, message, `${other}, or leave one of the three out`);
}

const maximumRanks = 2 ** 24;

function checkedRanks(job: JobSource, nodes: number, each: number): number {
  const ranks = nodes * each;
  if (ranks <= maximumRanks) return ranks;
  const message = `${nodes} hosts at ${each} ranks on each are ${ranks} ranks`;
  throw mistakeIn(job, 'nodes', message, `at most ${maximumRanks} are possible; look for a digit too many`);
}

/** dstack counts the processors of a host. */
function cpusOfResources(job: JobSource, { ranks, nodes, ranksPerNode }: Size): number {
  const cpu = job.raw.resources?.cpu;
  if (cpu === undefined) return 1;
  const count = typeof cpu === 'number' ? cpu : Number.parseInt(cpu, 10);
  const each = ranksPerNode ?? (ranks === 1 ? 1 : nodes === null ? null : Math.ceil(ranks / nodes));
  if (each !== null) return Math.max(1, Math.ceil(count / each));
  const message = `"cpu" counts the processors of a host, and ${ranks} ranks go on any number of hosts`;
  throw mistakeIn(job, 'resources', message, 'write cpus_per_task:, or nodes:');
}

function readMemory(job: JobSource): number {
  const { mem, resources } = job.raw;
  if (mem !== undefined && resources?.memory !== undefined) {
    const message = `mem: ${mem} and resources.memory: ${resources.memory} say the same twice`;
    throw mistakeIn(job, 'mem', message, 'leave one of them out');
  }
  const text = mem ?? resources?.memory?.split('..')[0];
  if (text === undefined) return 0;
  const bytes = parseBytes(text);
  if (bytes !== null && bytes > 0) return bytes;
  const key = mem === undefined ? 'resources' : 'mem';
  throw mistakeIn(job, key, `the memory is "${text}"`, 'write a whole number of bytes above 0, such as 512M or 200G');
}
