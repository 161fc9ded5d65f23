/** argv, environment and settings files → one set of settings, and the words that are not options. */
import type { CommandLine } from './option.ts';
import { perfCommandLine, runCommandLine } from './options.ts';
import { layerOfEnvironment, layerOfFlags, mergeSettings, Settings, type SettingsLayer } from './settings.ts';
import { layerOfFile, settingsFiles } from './settings-file.ts';
import { splitCommandLine } from './split.ts';

export interface ReadCommandLine<Name extends string> {
  /** `help` and `version` stand before everything else, even before settings that are wrong. */
  readonly asked: 'help' | 'version' | null;
  readonly settings: Settings<Name>;
  /** The places that the settings come from, the strongest first. */
  readonly layers: readonly SettingsLayer[];
  readonly words: readonly string[];
}

/** Throws a FailureError (usage). `Name` is the union of the names in `line.options`. */
export function readCommandLine<Name extends string>(
  argv: readonly string[],
  line: CommandLine,
  environment: Readonly<Record<string, string | undefined>>,
): ReadCommandLine<Name> {
  const { given, words } = splitCommandLine(argv, line);
  const flags = layerOfFlags(given);
  const asked = flags.has('help') ? 'help' : flags.has('version') ? 'version' : null;
  if (asked !== null) return { asked, settings: new Settings(flags), layers: [flags], words };

  const all = [...runCommandLine.options, ...perfCommandLine.options];
  const files = settingsFiles(environment).map((path) => layerOfFile(path, all));
  const layers = [flags, layerOfEnvironment(line.options, environment), ...files];
  return { asked, settings: new Settings(mergeSettings(line.options, layers)), layers, words };
}
