/** The options of other launchers, tool by tool: messages, translations and docs/migration.md are made from these tables. */
import type { CommandLine } from '../../model/option.ts';
import type { ForeignOption, ForeignTool } from './foreign-option.ts';
import { horovod } from './horovod.ts';
import { intelMpi, mpich } from './hydra.ts';
import { ncclTests } from './nccl-tests.ts';
import { openMpi } from './open-mpi.ts';
import { srun } from './srun.ts';
import { deepSpeed, torchrun } from './torch.ts';

const launchers: readonly ForeignTool[] = [openMpi, mpich, intelMpi, srun, torchrun, deepSpeed, horovod];
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
  return tools.flatMap(({ name, options }) =>
    options
      .filter(({ flags }) => flags.some((known) => bareFlag(known) === wanted))
      .map((option) => ({ tool: name, option })),
  );
}

/** One dash or two, dashes or underscores between words: all are alike. */
export function bareFlag(flag: string): string {
  return flag.replace(/^--?/u, '').replaceAll('_', '-');
}
