/** Options by the flags that users type. */
import type { CommandLine, Option } from './option.ts';

/** One dash or two, dashes or underscores between words: all are alike; capitals are not. */
export function bareFlag(flag: string): string {
  const bare = flag.slice(flag.startsWith('--') ? 2 : Number(flag.startsWith('-')));
  return bare.includes('_') ? bare.replaceAll('_', '-') : bare;
}

interface FlagIndex {
  readonly flags: ReadonlyMap<string, Option>;
  readonly pairFlags: ReadonlyMap<string, Option>;
}

/** Made with the first flag of a line: every start reads some, and a line has two hundred. */
const indexes = new WeakMap<CommandLine, FlagIndex>();

/** The option with this flag, as in mpirun's -hostfile and --hostfile. */
export function findByFlag(flag: string, line: CommandLine): Option | null {
  return indexOf(line).flags.get(bareFlag(flag)) ?? null;
}

/** The option that takes a name and a value as two words after this flag. */
export function findByPairFlag(flag: string, line: CommandLine): Option | null {
  return indexOf(line).pairFlags.get(bareFlag(flag)) ?? null;
}

function indexOf(line: CommandLine): FlagIndex {
  const known = indexes.get(line);
  if (known !== undefined) return known;
  const index = {
    flags: byFlag(line.options, (option) => option.flags),
    pairFlags: byFlag(line.options, (option) => option.pairFlags ?? []),
  };
  indexes.set(line, index);
  return index;
}

/** The first option with a flag has it. */
function byFlag(options: readonly Option[], flagsOf: (option: Option) => readonly string[]): Map<string, Option> {
  const found = new Map<string, Option>();
  for (const option of options.toReversed()) for (const flag of flagsOf(option)) found.set(bareFlag(flag), option);
  found.delete('');
  return found;
}
