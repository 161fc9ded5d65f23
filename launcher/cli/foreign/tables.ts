/** The options of other launchers, tool by tool: messages, translations and docs/migration.md are made from these tables. */
import type { CommandLine } from '../../model/option.ts';
import { bareFlag } from '../../model/flags.ts';
import type { ForeignOption, ForeignTool } from './foreign-option.ts';
import { accelerate } from './accelerate.ts';
import { aprun, fujitsu, pals } from './cray.ts';
import { horovod } from './horovod.ts';
import { intelMpi, mpich } from './hydra.ts';
import { jsrun } from './jsrun.ts';
import { ncclTests } from './nccl-tests.ts';
import { openMpi } from './open-mpi.ts';
import { pdsh } from './pdsh.ts';
import { srun } from './srun.ts';
import { deepSpeed, torchrun } from './torch.ts';

const launchers: readonly ForeignTool[] = [
  openMpi,
  mpich,
  intelMpi,
  srun,
  jsrun,
  torchrun,
  accelerate,
  deepSpeed,
  horovod,
  pals,
  aprun,
  fujitsu,
  pdsh,
];
export const foreignTools: readonly ForeignTool[] = [...launchers, ncclTests];

export interface FoundOption {
  readonly tool: string;
  readonly option: ForeignOption;
}

/** The tools whose options `line` answers, in groups of which the first that knows an option decides. */
export function toolsOf({ command }: CommandLine): readonly (readonly ForeignTool[])[] {
  if (command === 'perf') return [[ncclTests], launchers];
  return ['run', 'config', 'tune'].includes(command) ? [launchers] : [];
}

/** All entries of a flag, for any value. */
export function entriesOf(flag: string, tools: readonly ForeignTool[]): FoundOption[] {
  const wanted = bareFlag(flag);
  return tools.flatMap((tool) => (indexOf(tool).get(wanted) ?? []).map((option) => ({ tool: tool.name, option })));
}

const indexes = new Map<ForeignTool, ReadonlyMap<string, readonly ForeignOption[]>>();

/** A tool's entries by their bare flags, in the order of its table. */
function indexOf(tool: ForeignTool): ReadonlyMap<string, readonly ForeignOption[]> {
  const known = indexes.get(tool);
  if (known !== undefined) return known;
  const index = new Map<string, ForeignOption[]>();
  for (const option of tool.options) {
    for (const flag of new Set(option.flags.map(bareFlag))) index.set(flag, [...(index.get(flag) ?? []), option]);
  }
  indexes.set(tool, index);
  return index;
}
