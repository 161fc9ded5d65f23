/** The option table: the parser, --help and the merge of settings all come from here. */
import type { CommandLine, Option } from '../model/option.ts';
import { batchOptions } from './options/batch.ts';
import { configOptions } from './options/commands.ts';
import { convertOptions } from './options/convert.ts';
import { doctorOptions } from './options/doctor.ts';
import { hostsOptions } from './options/hosts.ts';
import { limitsOptions } from './options/limits.ts';
import { measureOptions } from './options/measure.ts';
import { otherOptions } from './options/other.ts';
import { outputOptions } from './options/output.ts';
import { placementOptions } from './options/placement.ts';
import { planOptions } from './options/plan.ts';
import { ranksOptions } from './options/ranks.ts';
import { topologyOptions } from './options/topology.ts';
import { tuneOptions } from './options/tune.ts';

const jobOptions = [
  ...ranksOptions,
  ...placementOptions,
  ...hostsOptions,
  ...outputOptions,
  ...limitsOptions,
  ...otherOptions,
] as const satisfies readonly Option[];

export type JobOptionName = (typeof jobOptions)[number]['name'];
export type MeasureOptionName = (typeof measureOptions)[number]['name'];
export type TuneOptionName = (typeof tuneOptions)[number]['name'];
export type PlanOptionName = (typeof planOptions)[number]['name'];
export type TopoOptionName = (typeof topologyOptions)[number]['name'] | (typeof reachingHosts)[number];
export type DoctorOptionName = (typeof doctorOptions)[number]['name'] | (typeof examiningHosts)[number];
export type BatchOptionName = (typeof batchOptions)[number]['name'] | (typeof schedulingHosts)[number];
export type HostsOptionName = (typeof convertOptions)[number]['name'] | (typeof namingHosts)[number];

type AnyOption =
  | (typeof jobOptions)[number]
  | (typeof measureOptions)[number]
  | (typeof tuneOptions)[number]
  | (typeof planOptions)[number]
  | (typeof topologyOptions)[number]
  | (typeof convertOptions)[number]
  | (typeof doctorOptions)[number];
type NameWith<Default> = Extract<AnyOption, { readonly default: Default }>['name'];

/** Options that have a value even if nobody gives one, whatever the command. */
export type DefaultedName = Exclude<NameWith<string>, NameWith<null>>;

export const runCommandLine: CommandLine = { command: 'run', options: jobOptions, words: 'program' };

/** config takes the options of a job, but its --explain prints settings instead of hosts. */
export const configCommandLine: CommandLine = {
  command: 'config',
  options: [
    ...configOptions,
    ...jobOptions.filter(({ name }) => name !== 'dry-run' && !configOptions.some((own) => own.name === name)),
  ],
  words: 'words',
};

/** perf's own -f is the factor, as in nccl-tests; its hostfile is spelled out. */
export const perfCommandLine: CommandLine = {
  command: 'perf',
  options: [...measureOptions, ...jobOptionsBeside(measureOptions)],
  words: 'words',
};

export const tuneCommandLine: CommandLine = {
  command: 'tune',
  options: [
    ...tuneOptions,
    ...jobOptionsBeside(tuneOptions).filter(({ name }) => name !== 'plan' && name !== 'doctor'),
  ],
  words: 'words',
};

export const planCommandLine: CommandLine = { command: 'plan', options: planOptions, words: 'words' };

const namingHosts = ['host', 'hostfile', 'include', 'exclude', 'resource-manager', 'version', 'help'] as const;

export const hostsCommandLine: CommandLine = {
  command: 'hosts',
  options: [...convertOptions, ...jobOptions.filter(({ name }) => namingHosts.some((known) => known === name))],
  words: 'words',
};

const schedulingHosts = [
  'host',
  'hostfile',
  'include',
  'exclude',
  'resource-manager',
  'quiet',
  'version',
  'help',
] as const;

export const batchCommandLine: CommandLine = {
  command: 'batch',
  options: [...batchOptions, ...jobOptions.filter(({ name }) => schedulingHosts.some((known) => known === name))],
  words: 'words',
};

const reachingHosts = ['rsh', 'stage', 'verbose', 'version', 'help'] as const;

export const topoCommandLine: CommandLine = {
  command: 'topo',
  options: [...topologyOptions, ...jobOptions.filter(({ name }) => reachingHosts.some((known) => known === name))],
  words: 'words',
};

const examiningHosts = [...namingHosts, 'rsh', 'stage', 'port-range', 'verbose'] as const;

export const doctorCommandLine: CommandLine = {
  command: 'doctor',
  options: [...doctorOptions, ...jobOptions.filter(({ name }) => examiningHosts.some((known) => known === name))],
  words: 'words',
};

/** Those of a job, without the flags that are a command's own, and without those that have no other. */
function jobOptionsBeside(own: readonly Option[]): Option[] {
  const taken = new Set(own.flatMap(({ flags }) => flags));
  return jobOptions
    .map((option: Option) => ({ ...option, flags: option.flags.filter((flag) => !taken.has(flag)) }))
    .filter(({ flags }) => flags.length > 0);
}
