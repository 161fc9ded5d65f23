/** A number of hosts (torchrun's --nnodes, srun's --nodes, deepspeed's --num_nodes) → the number of ranks. */
import type { CommandLine } from '../../model/option.ts';
import { parseInteger } from '../../model/values.ts';
import type { GivenOption } from '../split.ts';
import type { Problem, Translated } from './translate.ts';

const range = { minimum: 1, maximum: 1_000_000 };

/**
 * N hosts with K ranks each are N * K ranks, and `-n R` on N hosts are R / N ranks on each. Which hosts these are, the hostfile or the allocation
 * says; a job with fewer hosts is refused, since it cannot have so many ranks. Adds to `problems` where the numbers say nothing certain.
 */
export function withRanksOfNodes(
  given: readonly GivenOption[],
  { flag, translation }: Translated,
  line: CommandLine,
  problems: Problem[],
): readonly GivenOption[] {
  const text = translation.type === 'nodes' ? translation.count : '';
  const nodes = parseInteger(text, range);
  const perHost = valueOf(given, 'npernode');
  const ranks = valueOf(given, 'np');
  const total = ranks ?? (nodes !== null && perHost !== null ? nodes * perHost : null);
  const each = perHost ?? (nodes !== null && ranks !== null ? ranks / nodes : null);
  const [np, npernode] = ['np', 'npernode'].map((name) => line.options.find((option) => option.name === name));
  if (
    nodes === null ||
    total === null ||
    each === null ||
    !Number.isInteger(each) ||
    total !== nodes * each ||
    np === undefined ||
    npernode === undefined
  ) {
    const message = `${flag} ${text} does not say how many ranks there are`;
    const remedy = 'write -n RANKS, or -N RANKS for each host, and name the hosts with -H or --hostfile';
    problems.push({ flag, message, remedy });
    return given;
  }
  const others = given.filter(({ option }) => option !== np && option !== npernode);
  return [...others, { option: np, flag, value: `${total}` }, { option: npernode, flag, value: `${each}` }];
}

/** The number that an option has on the command line. */
function valueOf(given: readonly GivenOption[], name: string): number | null {
  const value = given.findLast(({ option }) => option.name === name)?.value;
  return value === undefined ? null : parseInteger(value, range);
}
