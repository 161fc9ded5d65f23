/** What an option is: one entry of the table from which parser, settings and help are made. */

import type { CommandName } from './command-names.ts';

/** How an option's value is read. All values stay strings as typed until they have passed `check` (values.ts). */
export type OptionKind =
  | { readonly type: 'flag' }
  /** `words`: what may stand instead of a number. */
  | { readonly type: 'integer'; readonly minimum: number; readonly maximum: number; readonly words?: readonly string[] }
  | { readonly type: 'seconds' }
  | { readonly type: 'bytes' }
  | { readonly type: 'ports' }
  | { readonly type: 'text' }
  | { readonly type: 'choice'; readonly choices: readonly string[] }
  /** May be left out (then it means `implied`); given only as --option=value, never as the next word. */
  | { readonly type: 'optional-choice'; readonly choices: readonly string[]; readonly implied: string }
  | { readonly type: 'optional-integer'; readonly minimum: number; readonly maximum: number; readonly implied: string }
  /** May be given several times; the values add up. */
  | { readonly type: 'list' };

export type OptionGroup = 'command' | 'hosts' | 'ranks' | 'placement' | 'measure' | 'output' | 'limits' | 'other';

/**
 * What ./ncclrun.json may give an option (project-rules.ts): any value; none; a path below its directory; a file that is the user's own (`hosts`: where
 * it begins with ^); variables that do not decide what code runs; files of --output below its directory.
 */
export type ProjectRule = 'any' | 'never' | 'path' | 'own-file' | 'hosts' | 'variables' | 'output';

export type Option = OptionBase & (FlagOnly | SettingOption);

/** Only a flag makes sense. */
interface FlagOnly {
  readonly environment: readonly [];
}

interface SettingOption {
  /** Environment variables, the stronger one first. */
  readonly environment: readonly [string, ...string[]];
  readonly project: ProjectRule;
}

interface OptionBase {
  /** Its key in ncclrun.json. */
  readonly name: string;
  /** With dashes, the usual one first. */
  readonly flags: readonly string[];
  /** Flags of this option that take two words, NAME and VALUE, and mean NAME=VALUE. */
  readonly pairFlags?: readonly string[];
  readonly kind: OptionKind;
  /** What stands for the value in --help; empty for flags. */
  readonly argument: string;
  readonly group: OptionGroup;
  readonly help: string;
  /** With several programs it may stand before each of them, for that one alone. */
  readonly perProgram?: boolean;
  /** As a user would type it, or null where leaving the option out has a meaning of its own. */
  readonly default: string | null;
}

/** Whether an option may be set by variables and in settings files. */
export function isSetting(option: Option): option is OptionBase & SettingOption {
  return option.environment.length > 0;
}

/** A command's options and what its words are. */
export interface CommandLine {
  readonly command: 'run' | CommandName;
  readonly options: readonly Option[];
  /** `program`: the first word that is no option begins the user's program. `words`: such words are the command's own. */
  readonly words: 'program' | 'words';
}
