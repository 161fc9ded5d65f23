/** How much `ncclrun doctor` looks at, and how it says it. */
import type { Option } from '../../model/option.ts';
import { jsonOption } from './commands.ts';

export const doctorOptions = [
  {
    name: 'quick',
    flags: ['--quick'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'look for a moment only, and try each pair of hosts with one size',
    default: null,
  },
  {
    name: 'passive',
    flags: ['--passive'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'put no load on the network',
    default: null,
  },
  {
    name: 'warnings',
    flags: ['--warnings'],
    environment: [],
    kind: { type: 'choice', choices: ['count', 'ok'] },
    argument: 'count|ok',
    group: 'command',
    help: 'ok: end with status 0 although there are warnings',
    default: 'count',
  },
  {
    name: 'readings',
    flags: ['--readings'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'command',
    help: 'print what this host reads of itself, as JSON, and judge nothing',
    default: null,
  },
  {
    name: 'from-readings',
    flags: ['--from'],
    environment: [],
    kind: { type: 'list' },
    argument: 'FILE',
    group: 'command',
    help: 'judge the readings in these files, which --readings has printed, instead of asking hosts',
    default: null,
  },
  jsonOption,
] as const satisfies readonly Option[];
