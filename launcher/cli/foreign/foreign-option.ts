/** What an entry of the tables of other tools' options is. */

/**
 * `means`: our words, in which {1} and {2} stand for the values. `each`: the same for every item of a list; `exports`: where the
 * item ALL stands for the whole environment. `ignored`: a note with the
 * reason. `instead`: refused, with what to write. `nodes`: a number of hosts, from which the number of ranks follows. `module`: the next
 * word is a Python module.
 */
export type Treatment = 'means' | 'each' | 'exports' | 'ignored' | 'instead' | 'nodes' | 'module';

export interface ForeignOption {
  /** All spellings, with dashes. */
  readonly flags: readonly string[];
  /** Names of its values, separated by spaces; `[V]` is a value that only = attaches. Empty for a flag. */
  readonly argument: string;
  readonly treatment: Treatment;
  readonly text: string;
  /** The entry applies to these values alone. */
  readonly when: RegExp | null;
  /** The same in words, for documents; null: the pattern is a list of words. */
  readonly whenWords: string | null;
}

/** An entry as the tables state it: spellings, values, treatment, text, and for which value, as a pattern and in words. */
export type ForeignRow = readonly [string, string, Treatment, string, RegExp?, string?];

export interface ForeignTool {
  /** Its name in messages and in docs/migration.md. */
  readonly name: string;
  readonly command: string;
  readonly options: readonly ForeignOption[];
}

export function foreignTool(name: string, command: string, rows: readonly ForeignRow[]): ForeignTool {
  const options = rows.map(([flags, argument, treatment, text, when, whenWords]) => ({
    flags: flags.split(' '),
    argument,
    treatment,
    text,
    when: when ?? null,
    whenWords: whenWords ?? null,
  }));
  return { name, command, options };
}
