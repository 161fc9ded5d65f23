/** What `ncclrun topo` shows, and how. */
import type { Option } from '../../model/option.ts';
import { jsonOption } from './commands.ts';

export const topologyFormats = ['text', 'json', 'xml', 'svg'] as const;

export const topologyOptions = [
  {
    name: 'from',
    flags: ['--from'],
    environment: [],
    kind: { type: 'text' },
    argument: 'FILE',
    group: 'command',
    help: "the machine that a topology file describes, NCCL's XML (- is standard input), instead of this one",
    default: null,
  },
  {
    name: 'topo-host',
    flags: ['--host', '-H'],
    environment: [],
    kind: { type: 'text' },
    argument: 'HOST',
    group: 'command',
    help: 'that host instead of this one',
    default: null,
  },
  {
    name: 'format',
    flags: ['--format'],
    environment: [],
    kind: { type: 'choice', choices: topologyFormats },
    argument: 'text|json|xml|svg',
    group: 'command',
    help: 'text for people, json for programs, xml as NCCL writes it, svg: a picture (default: text)',
    default: null,
  },
  { ...jsonOption, help: 'the same as --format json' },
] as const satisfies readonly Option[];
