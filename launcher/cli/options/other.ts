/** What is no job. */
import type { Option } from '../../model/option.ts';
import { helpOption } from './commands.ts';

export const otherOptions = [
  {
    name: 'dry-run',
    flags: ['--dry-run'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'other',
    help: 'print where each rank would run, and the command as understood; start nothing',
    default: null,
  },
  {
    name: 'version',
    flags: ['--version', '-V'],
    environment: [],
    kind: { type: 'flag' },
    argument: '',
    group: 'other',
    help: 'print the version',
    default: null,
  },
  helpOption,
] as const satisfies readonly Option[];
