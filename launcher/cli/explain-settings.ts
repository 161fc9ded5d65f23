/** Each setting with its source, and the overridden values of other sources. */
import { nearest } from '../text/nearest.ts';
import { isSetting, type Option } from '../model/option.ts';
import { placeOf } from './refusal.ts';
import { mergeSettings, type Setting, type SettingOrigin, type SettingsLayer } from './settings.ts';
import type { ReadSettings } from './settings-file.ts';

export interface ExplainedSettings {
  readonly schemaVersion: 1;
  readonly settings: readonly ExplainedSetting[];
  /** The stronger one first. */
  readonly files: readonly ExplainedFile[];
  /** What stands in the files and is not obeyed. */
  readonly refused: readonly RefusedSetting[];
}

interface ExplainedFile {
  readonly path: string;
  readonly found: boolean;
  /** Why nothing in it is obeyed. */
  readonly refused: string | null;
}

interface RefusedSetting {
  readonly name: string;
  /** Of a list one of its values. */
  readonly value: string;
  readonly source: string;
  readonly reason: string;
}

interface ExplainedSetting {
  /** Its key in a settings file. */
  readonly name: string;
  /** As typed; several only of a list, none where nothing is set and there is no default. */
  readonly values: readonly string[];
  readonly origin: SettingOrigin | null;
  /** `-n`, `NCCLRUN_NP`, `ncclrun.json:2:9`, `default`. */
  readonly source: string | null;
  /** Overridden values in order of precedence, without defaults. */
  readonly overridden: readonly { readonly source: string; readonly values: readonly string[] }[];
}

/** Throws a FailureError (usage) for a value that cannot be meant. */
export function explainedSettings(
  options: readonly Option[],
  layers: readonly SettingsLayer[],
  files: readonly ReadSettings[],
): ExplainedSettings {
  const kept = options.filter(isSetting);
  const merged = mergeSettings(kept, layers);
  const settings = kept.map(({ name }): ExplainedSetting => {
    const found = merged.get(name);
    if (found === undefined) return { name, values: [], origin: null, source: null, overridden: [] };
    const stated = layers.map((layer) => layer.get(name)).filter((setting) => setting !== undefined);
    const overridden = stated.slice(1).map((setting) => ({ source: sourceOf(setting), values: setting.values }));
    return { name, values: found.values, origin: found.origin, source: sourceOf(found), overridden };
  });
  return { schemaVersion: 1, settings, files: files.map(explainedFile), refused: files.flatMap(refusedSettings) };
}

function explainedFile({ file, found, refusals }: ReadSettings): ExplainedFile {
  const refusal = refusals.find(({ kind }) => kind === 'file');
  return { path: file.path, found, refused: refusal?.reason ?? null };
}

function refusedSettings({ refusals }: ReadSettings): RefusedSetting[] {
  return refusals.flatMap((refusal) => {
    if (refusal.kind === 'file') return [];
    const { option, value, position, reason } = refusal;
    return [{ name: option.name, value, source: placeOf(position), reason }];
  });
}

function sourceOf({ source, position }: Setting): string {
  return position === undefined ? source : placeOf(position);
}

/** Variables that look like an option's but are none's. */
export function misspeltVariables(
  options: readonly Option[],
  environment: Readonly<Record<string, string | undefined>>,
): { readonly variable: string; readonly guess: string }[] {
  const known = options.flatMap((option) => option.environment);
  return Object.keys(environment).flatMap((variable) => {
    if (!variable.startsWith('NCCLRUN_') || known.includes(variable)) return [];
    const end = variable.slice('NCCLRUN_'.length);
    const guess = nearest(
      end,
      known.map((name) => name.replace('NCCLRUN_', '')),
    );
    return guess === null ? [] : [{ variable, guess: `NCCLRUN_${guess}` }];
  });
}
