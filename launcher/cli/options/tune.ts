/** What `ncclrun tune` measures, and where the table goes. */
import type { Option } from '../../model/option.ts';
import { beginOption, deviceOption, endOption, factorOption, itersOption } from './measure.ts';

export const tuneOptions = [
  {
    name: 'collective',
    flags: ['--collective'],
    environment: [],
    kind: { type: 'list' },
    argument: 'NAME',
    group: 'measure',
    help: 'whose variants are measured: all_reduce, all_gather, … or all',
    default: 'all',
  },
  beginOption,
  { ...endOption, help: 'largest size in bytes (default: 64M, on GPUs 1G)', default: null },
  { ...factorOption, default: '4' },
  { ...itersOption, help: 'most operations that are timed together (default: 1000, on GPUs 50)', default: null },
  {
    name: 'rounds',
    flags: ['--rounds'],
    environment: [],
    kind: { type: 'integer', minimum: 1, maximum: 1000 },
    argument: 'N',
    group: 'measure',
    help: 'how often each variant has its turn; the median counts',
    default: '7',
  },
  {
    name: 'max-spread',
    flags: ['--max-spread'],
    environment: [],
    kind: { type: 'integer', minimum: 0, maximum: 100_000 },
    argument: 'PERCENT',
    group: 'measure',
    help: 'rounds that differ more are not stored, in percent of the median',
    default: '30',
  },
  deviceOption,
  {
    name: 'table',
    flags: ['-o', '--output'],
    environment: [],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'measure',
    help: "where the table goes (default: this user's cache directory, where jobs find it)",
    default: null,
  },
] as const satisfies readonly Option[];
