/** argv, environment and settings files → one set of settings, and the words that are not options. */
import { ownUser } from '../../control/own-user.ts';
import type { CommandLine } from '../model/option.ts';
import { perfCommandLine, runCommandLine } from './options.ts';
import { layerOfEnvironment, layerOfFlags, mergeSettings, Settings, type SettingsLayer } from './settings.ts';
import { type ReadSettings, readSettingsFile, settingsFiles } from './settings-file.ts';
import { type GivenOption, splitCommandLine } from './split.ts';

interface ReadCommandLine<Name extends string> {
  /** `help` and `version` stand before everything else, even before settings that are wrong. */
  readonly asked: 'help' | 'version' | null;
  readonly settings: Settings<Name>;
  /** Sources of the settings in order of precedence. */
  readonly layers: readonly SettingsLayer[];
  /** The settings files, the stronger one first, with what of them is not obeyed. */
  readonly files: readonly ReadSettings[];
  /** What was ignored of other tools' options, and why. */
  readonly notes: readonly string[];
  readonly words: readonly string[];
  /** The programs after the first, with the settings of each. */
  readonly further: readonly { readonly settings: Settings<Name>; readonly words: readonly string[] }[];
}

/**
 * Throws a FailureError (usage). `Name` is the union of the names in `line.options`, and of a job's for a command that starts one: what
 * it does not take has its default.
 */
export function readCommandLine<Name extends string>(
  argv: readonly string[],
  line: CommandLine,
  environment: Readonly<Record<string, string | undefined>>,
): ReadCommandLine<Name> {
  const { given, words, further, notes } = splitCommandLine(argv, line);
  // MPICH's -genv and its relatives are for all programs, wherever they stand.
  const shared = [given, ...further.map((part) => part.given)].map((options) =>
    options.filter(({ flag }) => /^--?genv/u.test(flag)),
  );
  const withShared = (own: readonly GivenOption[], index: number) =>
    layerOfFlags([...shared.flatMap((options, from) => (from === index ? [] : options)), ...own]);
  const flags = withShared(given, 0);
  const asked = flags.has('help') ? 'help' : flags.has('version') ? 'version' : null;
  if (asked !== null)
    return { asked, settings: new Settings(flags), layers: [flags], files: [], notes, words, further: [] };

  const all = [...runCommandLine.options, ...perfCommandLine.options];
  const uid = ownUser();
  const files = settingsFiles(environment).map((file) => readSettingsFile(file, all, uid));
  const weaker = [layerOfEnvironment(line.options, environment), ...files.map(({ layer }) => layer)];
  const others = runCommandLine.options.filter(({ name }) => !line.options.some((own) => own.name === name));
  const defaults = mergeSettings(others, []);
  const settingsOf = (layer: SettingsLayer) =>
    new Settings<Name>(new Map([...defaults, ...mergeSettings(line.options, [layer, ...weaker])]));
  return {
    asked,
    settings: settingsOf(flags),
    layers: [flags, ...weaker],
    files,
    notes,
    words,
    further: further.map((part, index) => ({
      settings: settingsOf(withShared(part.given, index + 1)),
      words: part.words,
    })),
  };
}
