/** Which ranks there are. */
import type { Option } from '../option.ts';

const maximumRanks = 1_000_000;

export const ranksOptions = [
  {
    name: 'np',
    flags: ['-n', '-np', '--np', '--ntasks'],
    environment: ['NCCLRUN_NP'],
    kind: { type: 'integer', minimum: 1, maximum: maximumRanks },
    argument: 'N',
    group: 'ranks',
    help: 'ranks in all (default: one for every slot)',
    default: null,
  },
  {
    name: 'npernode',
    flags: ['-N', '--npernode', '-ppn', '--nproc-per-node', '--ntasks-per-node'],
    environment: ['NCCLRUN_NPERNODE'],
    kind: { type: 'integer', minimum: 1, maximum: maximumRanks, words: ['gpu'] },
    argument: 'K|gpu',
    group: 'ranks',
    help: 'ranks on each host; gpu: one for each of its GPUs',
    default: null,
  },
  {
    name: 'oversubscribe',
    flags: ['--oversubscribe'],
    environment: ['NCCLRUN_OVERSUBSCRIBE'],
    kind: { type: 'flag' },
    argument: '',
    group: 'ranks',
    help: 'allow more ranks on a host than it has slots',
    default: null,
  },
  {
    name: 'export',
    flags: ['-x', '--export'],
    pairFlags: ['-genv'],
    environment: ['NCCLRUN_EXPORT'],
    kind: { type: 'list' },
    argument: 'VAR[=value]',
    group: 'ranks',
    help: "environment for the ranks: VAR (its value here), VAR=value, or 'PREFIX*'; repeat for more",
    default: null,
  },
  {
    name: 'wdir',
    flags: ['--wdir', '-wd', '--chdir'],
    environment: ['NCCLRUN_WDIR'],
    kind: { type: 'text' },
    argument: 'DIR',
    group: 'ranks',
    help: 'working directory of the ranks (default: this one)',
    default: null,
  },
  {
    name: 'plan',
    flags: ['--plan'],
    environment: ['NCCLRUN_PLAN'],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'ranks',
    help: 'a communicator plan to use instead of making one',
    default: null,
  },
] as const satisfies readonly Option[];
