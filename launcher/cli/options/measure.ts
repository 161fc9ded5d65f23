/** What perf measures. */
import type { Option } from '../../model/option.ts';

/** In the order of native/perf/elements.cc. */
const types = [
  'int8',
  'uint8',
  'int32',
  'uint32',
  'int64',
  'uint64',
  'half',
  'float',
  'double',
  'bfloat16',
  'f8e4m3',
  'f8e5m2',
  'all',
] as const;
const operators = ['sum', 'prod', 'max', 'min', 'avg', 'mulsum', 'all'] as const;

export const beginOption = {
  name: 'begin',
  flags: ['-b', '--begin', '--minbytes'],
  environment: [],
  kind: { type: 'bytes' },
  argument: 'SIZE',
  group: 'measure',
  help: 'smallest size in bytes; K, M and G stand for 1024, 1024² and 1024³',
  default: '8',
} as const satisfies Option;

export const endOption = {
  name: 'end',
  flags: ['-e', '--end', '--maxbytes'],
  environment: [],
  kind: { type: 'bytes' },
  argument: 'SIZE',
  group: 'measure',
  help: 'largest size in bytes',
  default: '64M',
} as const satisfies Option;

export const factorOption = {
  name: 'factor',
  flags: ['-f', '--factor', '--stepfactor'],
  environment: [],
  kind: { type: 'integer', minimum: 2, maximum: 1_048_576 },
  argument: 'F',
  group: 'measure',
  help: 'each size is the one before times this',
  default: '2',
} as const satisfies Option;

export const itersOption = {
  name: 'iters',
  flags: ['--iters'],
  environment: [],
  kind: { type: 'integer', minimum: 1, maximum: 1_000_000_000 },
  argument: 'N',
  group: 'measure',
  help: 'timed operations per size',
  default: '20',
} as const satisfies Option;

export const deviceOption = {
  name: 'device',
  flags: ['--device'],
  environment: ['NCCLRUN_DEVICE'],
  project: 'any',
  kind: { type: 'choice', choices: ['auto', 'cuda', 'host'] },
  argument: 'DEVICE',
  group: 'measure',
  help: 'where buffers lie: cuda, a GPU per rank; host, ordinary memory; auto, GPUs if every rank has its own',
  default: 'auto',
} as const satisfies Option;

export const measureOptions = [
  beginOption,
  endOption,
  factorOption,
  itersOption,
  {
    name: 'warmup',
    flags: ['-w', '--warmup', '--warmup_iters'],
    environment: [],
    kind: { type: 'integer', minimum: 0, maximum: 1_000_000_000 },
    argument: 'N',
    group: 'measure',
    help: 'operations per size before the clock starts',
    default: '5',
  },
  {
    name: 'blocking',
    flags: ['-z', '--blocking'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'measure',
    help: 'wait for each operation before the next',
    default: null,
  },
  {
    name: 'root',
    flags: ['-r', '--root'],
    environment: [],
    kind: { type: 'integer', minimum: 0, maximum: 1_048_576 },
    argument: 'RANK',
    group: 'measure',
    help: 'the rank that has or gets the data: broadcast, reduce, gather, scatter',
    default: '0',
  },
  {
    name: 'type',
    flags: ['-d', '--type', '--datatype'],
    environment: [],
    kind: { type: 'choice', choices: types },
    argument: 'TYPE',
    group: 'measure',
    help: `element type: ${types.join(', ')}`,
    default: 'float',
  },
  {
    name: 'op',
    flags: ['-o', '--op'],
    environment: [],
    kind: { type: 'choice', choices: operators },
    argument: 'OP',
    group: 'measure',
    help: `reduction: ${operators.join(', ')}`,
    default: 'sum',
  },
  deviceOption,
  {
    name: 'net-sizes',
    flags: ['--sizes'],
    environment: [],
    kind: { type: 'list' },
    argument: 'SIZE,…',
    group: 'measure',
    help: 'of perf net: sizes of the messages whose bandwidth is measured',
    default: '64K,1M,16M',
  },
  {
    name: 'nics',
    flags: ['--nics'],
    environment: [],
    kind: { type: 'choice', choices: ['rail', 'all'] },
    argument: 'WHICH',
    group: 'measure',
    help: 'of perf net: rail, NICs of equal index; all, each with each',
    default: 'rail',
  },
  {
    name: 'check',
    flags: ['--check'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'measure',
    help: 'compare every element with the exact result',
    default: null,
  },
] as const satisfies readonly Option[];
