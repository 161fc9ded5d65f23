/** Options of the commands that start no job. */
import type { Option } from '../../model/option.ts';

export const helpOption = {
  name: 'help',
  flags: ['--help', '-h'],
  environment: [],
  kind: { type: 'flag' },
  argument: '',
  group: 'other',
  help: 'print this help',
  default: null,
} as const satisfies Option;

export const jsonOption = {
  name: 'json',
  flags: ['--json'],
  environment: ['NCCLRUN_JSON'],
  project: 'any',
  kind: { type: 'flag' },
  argument: '',
  group: 'command',
  help: 'print one JSON object',
  default: null,
} as const satisfies Option;

/** Beside these, config takes every option of a job. */
export const configOptions = [
  {
    name: 'explain',
    flags: ['--explain'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'show where each setting comes from and which lower-priority settings it overrides',
    default: null,
  },
  jsonOption,
] as const satisfies readonly Option[];

export const plainOptions = [helpOption] as const satisfies readonly Option[];

export const psOptions = [helpOption, jsonOption] as const satisfies readonly Option[];

const followedRanks = {
  name: 'rank',
  flags: ['--rank'],
  environment: [],
  kind: { type: 'text' },
  argument: 'LIST',
  group: 'command',
  help: 'show the output of these ranks only, such as 0,3-5',
  default: null,
} as const satisfies Option;

export const logsOptions = [
  helpOption,
  followedRanks,
  {
    name: 'follow',
    flags: ['-f', '--follow'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'go on until the job ends, and exit with its status',
    default: null,
  },
] as const satisfies readonly Option[];

export const attachOptions = [helpOption, followedRanks] as const satisfies readonly Option[];

export const stackOptions = [
  helpOption,
  {
    name: 'stack-rank',
    flags: ['--rank'],
    environment: [],
    kind: { type: 'text' },
    argument: 'LIST',
    group: 'command',
    help: 'read the stacks of these ranks only, such as 0,3-5',
    default: null,
  },
  jsonOption,
] as const satisfies readonly Option[];

export const dumpOptions = [
  helpOption,
  {
    name: 'output-dump',
    flags: ['-o', '--output'],
    environment: [],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'command',
    help: 'where to (default: ./ncclrun-JOB.json)',
    default: null,
  },
] as const satisfies readonly Option[];

export const replayOptions = [
  helpOption,
  {
    name: 'replayed-rank',
    flags: ['--rank'],
    environment: [],
    kind: { type: 'integer', minimum: 0, maximum: 16_777_215 },
    argument: 'R',
    group: 'command',
    help: 'show the operations of this rank only',
    default: null,
  },
  {
    name: 'last',
    flags: ['--last'],
    environment: [],
    kind: { type: 'integer', minimum: 1, maximum: 1_000_000 },
    argument: 'N',
    group: 'command',
    help: 'show the last N operations of each communicator (default: 32)',
    default: null,
  },
  {
    name: 'perfetto',
    flags: ['--perfetto'],
    environment: [],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'command',
    help: 'write a trace for ui.perfetto.dev instead of the tables',
    default: null,
  },
  {
    name: 'html',
    flags: ['--html'],
    environment: [],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'command',
    help: 'write a page for a browser, all in one file, instead of the tables',
    default: null,
  },
  {
    name: 'redact',
    flags: ['--redact'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'replace the names of hosts in the page of --html',
    default: null,
  },
] as const satisfies readonly Option[];

export const bundleOptions = [
  helpOption,
  {
    name: 'output-archive',
    flags: ['-o', '--output'],
    environment: [],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'command',
    help: 'where to: NAME.tar.gz, or NAME.tar.zst (smaller, faster to unpack); - is stdout (default: ./ncclrun-VERSION-….tar.gz)',
    default: null,
  },
] as const satisfies readonly Option[];

export const buildOptions = [
  helpOption,
  {
    name: 'kernels',
    flags: ['--kernels'],
    environment: [],
    kind: { type: 'text' },
    argument: '[LIST]',
    group: 'command',
    help: 'kernels for GPUs of these compute capabilities, without the dot: 80,90; alone: for the GPUs of this machine; none: none',
    default: null,
  },
] as const satisfies readonly Option[];

export const sbatchOptions = [
  helpOption,
  {
    name: 'print',
    flags: ['--print'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'print the script instead of submitting it',
    default: null,
  },
] as const satisfies readonly Option[];
