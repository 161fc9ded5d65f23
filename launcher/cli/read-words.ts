/** The command lines of the commands that start no job, read by yargs' parser: it is loaded by these commands alone. */
import type { CommandEntry } from './command-table.ts';
import { checkedWords } from './checked-words.ts';
import type { Option } from '../model/option.ts';
import { mergeSettings, Settings, type Setting } from './settings.ts';
import { problemsError, unknownProblem } from './unknown-option.ts';
import { usageError } from '../model/usage-error.ts';

export interface ReadWords<Name extends string> {
  readonly asked: 'help' | null;
  readonly settings: Settings<Name>;
  readonly words: readonly string[];
}

/** `argv` begins after the command's name. Throws a FailureError (usage). `Name` is the union of the option names in `entry`. */
export async function readWords<Name extends string>(
  argv: readonly string[],
  entry: CommandEntry,
): Promise<ReadWords<Name>> {
  const { options } = entry.line;
  // The parser alone: a whole yargs looks for a version in the package.json of the working directory or of one above, whoever has put it there.
  const { Parser } = await import('yargs/helpers');
  const names = (isFlag: boolean) =>
    options.filter(({ kind }) => (kind.type === 'flag') === isFlag).map((option) => spellings(option)[0] ?? '');
  const { _: words, ...parsed } = Parser([...argv], {
    boolean: names(true),
    string: names(false),
    alias: Object.fromEntries(options.map((option) => [spellings(option)[0], spellings(option).slice(1)])),
    configuration: {
      'boolean-negation': false,
      'camel-case-expansion': false,
      'dot-notation': false,
      'duplicate-arguments-array': true,
      'parse-numbers': false,
      'parse-positional-numbers': false,
      'short-option-groups': false,
      'strip-aliased': true,
    },
  });
  const layer = new Map<string, Setting>();
  for (const [key, value] of Object.entries(parsed)) {
    const option = options.find((candidate) => spellings(candidate)[0] === key);
    const flag = key.length === 1 ? `-${key}` : `--${key}`;
    if (option === undefined) throw problemsError([unknownProblem(asTyped(argv, key) ?? flag, entry.line)]);
    const values = (Array.isArray(value) ? value : [value]).map(String);
    if (values.includes('')) throw usageError(`${flag} needs a value`, `write ${flag} ${option.argument}`);
    layer.set(option.name, {
      values: option.kind.type === 'list' ? values : values.slice(-1),
      origin: 'flag',
      source: flag,
    });
  }
  if (layer.has('help')) return { asked: 'help', settings: new Settings(layer), words: [] };
  const settings = new Settings<Name>(mergeSettings(options, [layer]));
  return { asked: null, settings, words: checkedWords(words.map(String), entry) };
}

/** The option `key` with the dashes that it has in `argv`. */
function asTyped(argv: readonly string[], key: string): string | undefined {
  return argv.map((word) => word.split('=', 1)[0] ?? '').find((word) => word.replace(/^--?/u, '') === key);
}

/** As yargs wants them: without dashes. */
function spellings(option: Option): string[] {
  return option.flags.map((flag) => flag.replace(/^--?/u, ''));
}
