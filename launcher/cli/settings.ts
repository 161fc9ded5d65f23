/** One value per option from five sources: flag, NCCLRUN_* environment, ./ncclrun.json, the user's config.json, default. */
import type { SourcePosition } from '../model/failure.ts';
import { nearest } from '../text/nearest.ts';
import type { Option, OptionKind } from '../model/option.ts';
import { bareFlag } from '../model/flags.ts';
import type { GivenOption } from './split.ts';
import type { DefaultedName } from './options.ts';
import { usageError } from '../model/usage-error.ts';
import { parseBytes, parseFlag, parseInteger, parseSeconds, wanted } from '../model/values.ts';

export type SettingOrigin = 'flag' | 'environment' | 'file' | 'default';

export interface Setting {
  /** As typed; lists have one per mention. Each has passed its option's check. */
  readonly values: readonly string[];
  readonly origin: SettingOrigin;
  /** Where it comes from, for messages: `-np`, `NCCLRUN_NP`, `"np" in ncclrun.json`, `default`. */
  readonly source: string;
  /** Of a value in a file. */
  readonly position?: SourcePosition;
}

/** One source of settings: values by option name. `mergeSettings` takes sources in order of precedence. */
export type SettingsLayer = ReadonlyMap<string, Setting>;

export class Settings<Name extends string> {
  readonly #merged: ReadonlyMap<string, Setting>;

  constructor(merged: ReadonlyMap<string, Setting>) {
    this.#merged = merged;
  }

  /** The same with another value of one option, which the command decides. */
  with(name: Name, value: string): Settings<Name> {
    return new Settings(new Map(this.#merged).set(name, { values: [value], origin: 'default', source: 'default' }));
  }

  /** The same without an option's value. */
  without(name: Name): Settings<Name> {
    return new Settings(new Map([...this.#merged].filter(([known]) => known !== name)));
  }

  setting(name: Name): Setting | null {
    return this.#merged.get(name) ?? null;
  }

  list(name: Name): readonly string[] {
    return this.#merged.get(name)?.values ?? [];
  }

  text(name: Name & DefaultedName): string;
  text(name: Name): string | null;
  text(name: Name): string | null {
    return this.list(name).at(-1) ?? null;
  }

  flag(name: Name): boolean {
    const text = this.text(name);
    return text !== null && parseFlag(text) === true;
  }

  integer(name: Name): number | null {
    const text: string | null = this.text(name);
    return text === null ? null : parseInteger(text, { minimum: 0, maximum: Number.MAX_SAFE_INTEGER });
  }

  seconds(name: Name & DefaultedName): number;
  seconds(name: Name): number | null;
  seconds(name: Name): number | null {
    const text: string | null = this.text(name);
    return text === null ? null : parseSeconds(text);
  }

  bytes(name: Name): number | null {
    const text = this.text(name);
    return text === null ? null : parseBytes(text);
  }
}

/** The value of the first source wins as a whole; lists of several sources are not joined. Throws a FailureError (usage). */
export function mergeSettings(options: readonly Option[], layers: readonly SettingsLayer[]): Map<string, Setting> {
  const merged = new Map<string, Setting>();
  for (const option of options) {
    const found = layers.map((layer) => layer.get(option.name)).find((setting) => setting !== undefined);
    if (found !== undefined) merged.set(option.name, checked(option, found));
    else if (option.default !== null)
      merged.set(option.name, { values: [option.default], origin: 'default', source: 'default' });
  }
  return merged;
}

function checked(option: Option, setting: Setting): Setting {
  for (const value of setting.values) {
    const want = wanted(option.kind, value);
    if (want === null) continue;
    const { position, source } = setting;
    const what = position === undefined ? source : `"${option.name}"`;
    throw usageError(`${what} is "${value}"`, `${guessed(option.kind, value)}${want} is wanted`, position);
  }
  return setting;
}

function guessed(kind: OptionKind, value: string): string {
  const guess = 'choices' in kind ? nearest(value.toLowerCase(), kind.choices) : null;
  return guess === null ? '' : `did you mean ${guess}? `;
}

/**
 * Of an option given twice the last mention counts; lists add up. Throws a FailureError (usage) for two spellings of one option with different
 * values: whoever writes both means two things.
 */
export function layerOfFlags(given: readonly GivenOption[]): SettingsLayer {
  const layer = new Map<string, Setting>();
  for (const { option, flag, value } of given) {
    const before = layer.get(option.name);
    const earlier = option.kind.type === 'list' ? (before?.values ?? []) : [];
    const isOverride = ['list', 'flag'].includes(option.kind.type) || 'implied' in option.kind;
    if (before !== undefined && !isOverride && bareFlag(before.source) !== bareFlag(flag)) {
      const [first = ''] = before.values;
      if (first !== value) throw twoSpellings(option, `${before.source} ${first}`, `${flag} ${value}`);
    }
    layer.set(option.name, { values: [...earlier, value], origin: 'flag', source: flag });
  }
  return layer;
}

function twoSpellings(option: Option, first: string, second: string): Error {
  const remedy =
    option.name === 'npernode'
      ? 'leave one of them out; -N is the number of ranks on each host here (for srun it is the number of hosts)'
      : 'leave one of them out';
  return usageError(`${first} and ${second} are the same option with two values`, remedy);
}

/** A list in a variable is separated by commas. A variable that is set but empty counts as not set. */
export function layerOfEnvironment(
  options: readonly Option[],
  environment: Readonly<Record<string, string | undefined>>,
): SettingsLayer {
  const layer = new Map<string, Setting>();
  for (const option of options) {
    for (const name of option.environment.toReversed()) {
      const value = environment[name];
      if (value === undefined || value === '') continue;
      const values = option.kind.type === 'list' ? value.split(',') : [value];
      layer.set(option.name, { values, origin: 'environment', source: name });
    }
  }
  return layer;
}
