/** `ncclrun hosts` beyond the options that name hosts. */
import { grammarNames } from '../../allocation/print/grammar-names.ts';
import type { Option } from '../../model/option.ts';
import { jsonOption } from './commands.ts';

export const convertOptions = [
  {
    name: 'to',
    flags: ['--to'],
    environment: [],
    kind: { type: 'choice', choices: grammarNames },
    argument: 'GRAMMAR',
    group: 'command',
    help: `write the hosts as another tool reads them: ${grammarNames.join(', ')}`,
    default: null,
  },
  {
    name: 'count',
    flags: ['--count'],
    environment: [],
    kind: { type: 'optional-choice', choices: ['hosts', 'slots'], implied: 'hosts' },
    argument: 'hosts|slots',
    group: 'command',
    help: 'print only how many hosts (or slots) there are',
    default: null,
  },
  { ...jsonOption, group: 'output', help: 'the same as --to json' },
  {
    name: 'slots',
    flags: ['--slots'],
    environment: [],
    kind: { type: 'integer', minimum: 1, maximum: 65_536 },
    argument: 'N',
    group: 'hosts',
    help: 'the number of slots of hosts that state none',
    default: null,
  },
] as const satisfies readonly Option[];
