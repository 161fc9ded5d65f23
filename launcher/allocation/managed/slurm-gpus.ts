/**
 * The GPUs of a Slurm job. Its environment repeats what was asked for; which GPUs each host has then, only Slurm knows, where they were counted per
 * job, task or socket.
 */
import { parseHostList } from '../grammar/host-list.ts';
import { thisMachine } from '../grammar/machine.ts';
import { Reading } from '../grammar/reading.ts';
import type { TaskGpus } from '../../model/types.ts';
import type { Environment } from './manager.ts';

const countedElsewhere = [
  'SLURM_GPUS',
  'SLURM_GPUS_PER_TASK',
  'SLURM_GPUS_PER_SOCKET',
  'SLURM_NTASKS_PER_GPU',
  'SLURM_TRES_PER_TASK',
  'SLURM_GPU_BIND',
];

/** True where the environment does not say how many GPUs each host has, and a step of one task per host would not get all of them by itself. */
export function needsJobDetails(environment: Environment): boolean {
  return countedElsewhere.some((name) => (environment[name] ?? '') !== '');
}

/** `    Nodes=h[1-2] CPU_IDs=0 Mem=0 GRES=gpu:fake:4(IDX:0-3),nic:1` of `scontrol show job --details` */
const NODES = /^\s*Nodes=(\S+) CPU_IDs=.*?\bGRES=(\S*)/gmu;

/** `TresPerJob=gres:gpu:small:4`: a step may name types only if the job did. */
const TYPED = /^\s*TresPer[A-Z][a-z]+=.*\bgres[:/]gpu:[^:=,\s]+[:=][0-9]/mu;

/** The job's GPUs on a host. */
interface HostGpus {
  readonly count: number;
  /** srun's option that asks for all of them. */
  readonly option: string;
}

/**
 * By host. Where hosts have different numbers, a step of its own on each has to ask with --gpus: a step gets no more from --gres than every host of
 * the job has (Slurm 22.05).
 */
export function gpusByHost(details: string): ReadonlyMap<string, HostGpus> {
  const lists = gresByHost(details);
  const isTyped = TYPED.test(details);
  const isEven = new Set(lists.values()).size === 1;
  return new Map(Array.from(lists, ([host, gres]) => [host, { count: countGpus(gres), option: optionOf(gres) }]));

  function optionOf(gres: string): string {
    const count = countGpus(gres);
    if (count === 0) return '--gres=none';
    const kinds = isTyped ? gres.split(',').map((one) => one.slice('gpu:'.length)) : [String(count)];
    return isEven ? `--gres=${kinds.map((kind) => `gpu:${kind}`).join(',')}` : `--gpus=${kinds.join(',')}`;
  }
}

/** `gpu:a100:2,gpu:h100:1`; an empty text for none. */
function gresByHost(details: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [, hosts = '', gres = ''] of details.matchAll(NODES)) {
    const gpus = gres
      .replaceAll(/\([^)]*\)/gu, '')
      .split(',')
      .filter((one) => one.startsWith('gpu:') && !one.endsWith(':0'));
    for (const item of parseHostList(hosts, thisMachine, new Reading(), 'scontrol'))
      if ('name' in item) found.set(item.name, gpus.join(','));
  }
  return found;
}

function countGpus(gres: string): number {
  const counts = gres.split(',').map((one) => Number(/:([0-9]+)$/u.exec(one)?.[1] ?? 0));
  return counts.reduce((sum, count) => sum + count, 0);
}

/** What srun binds the tasks of a host to: as --gpu-bind says, else as --gpus-per-task and --ntasks-per-gpu imply. Null: all GPUs are for all. */
export function taskGpus(environment: Environment): TaskGpus | null {
  const bind = (environment['SLURM_GPU_BIND'] ?? '').split(',').filter((word) => !/^v(erbose)?$/u.test(word));
  const [, type = '', first = ''] = /^([a-z_]+)(?::(.*))?$/u.exec(bind[0] ?? '') ?? [];
  const values = [first, ...bind.slice(1)];
  switch (type) {
    case 'map_gpu':
      return { type: 'turns', turns: values.flatMap(repeated).map((text) => [Number(text)]) };
    case 'mask_gpu':
      return { type: 'turns', turns: values.flatMap(repeated).map(bitsOf) };
    case 'single':
      return { type: 'single', tasks: Number(first) };
    case 'per_task':
      return { type: 'perTask', gpus: Number(first) };
    case '':
      return implied(environment);
    default:
      return null;
  }
}

function implied(environment: Environment): TaskGpus | null {
  const perTask =
    lastNumber(environment['SLURM_GPUS_PER_TASK']) ??
    lastNumber(/(?:^|,)gres[/:]gpu[^,]*/u.exec(environment['SLURM_TRES_PER_TASK'] ?? '')?.[0]);
  if (perTask !== null) return { type: 'perTask', gpus: perTask };
  const perGpu = lastNumber(environment['SLURM_NTASKS_PER_GPU']);
  return perGpu === null ? null : { type: 'single', tasks: perGpu };
}

/** `2`, `h200:2`, `gres/gpu=2`, `gres:gpu:h200:2` */
function lastNumber(text = ''): number | null {
  const digits = /(?:^|[:=])([1-9][0-9]{0,4})$/u.exec(text)?.[1];
  return digits === undefined ? null : Number(digits);
}

/** `3*4` is 3 four times. */
function repeated(text: string): string[] {
  const [value = '', times = '1'] = text.split('*');
  return Array.from({ length: Math.min(Number(times) || 1, 1024) }, () => value);
}

function bitsOf(mask: string): number[] {
  const bits = /^(?:0x)?([0-9a-f]{1,16})$/iu.exec(mask)?.[1];
  const value = bits === undefined ? 0n : BigInt(`0x${bits}`);
  return Array.from({ length: 64 }, (_, bit) => bit).filter((bit) => (value >> BigInt(bit)) & 1n);
}
