/** Settings from ./ncclrun.json and $XDG_CONFIG_HOME/ncclrun/config.json: one object, keys are option names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { nearest } from './nearest.ts';
import type { Option } from './option.ts';
import type { Setting, SettingsLayer } from './settings.ts';
import { usageError } from './usage-error.ts';

/** The files that are looked for, the stronger one first. */
export function settingsFiles(environment: Readonly<Record<string, string | undefined>>): string[] {
  const home = environment['HOME'];
  const base = environment['XDG_CONFIG_HOME'] || (home === undefined ? null : join(home, '.config'));
  return base === null ? ['ncclrun.json'] : ['ncclrun.json', join(base, 'ncclrun', 'config.json')];
}

/** `all` are the options of every command (a file serves them all). Throws a FailureError (usage); a missing file is empty. */
export function layerOfFile(path: string, all: readonly Option[]): SettingsLayer {
  const content = readIfThere(path);
  return content === null ? new Map() : layerOfJson(content, path, all);
}

function readIfThere(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : null;
    if (code === 'ENOENT' || code === 'ENOTDIR') return null;
    throw usageError(`cannot read the settings in ${path}: ${String(code ?? error)}`, 'make it readable or remove it');
  }
}

/** Throws a FailureError (usage) naming the file and the key. */
export function layerOfJson(content: string, path: string, all: readonly Option[]): SettingsLayer {
  const settings = parseObject(content, path);
  const usable = all.filter((option) => option.environment.length > 0);
  const layer = new Map<string, Setting>();
  for (const [key, value] of Object.entries(settings)) {
    const source = `"${key}" in ${path}`;
    const option = usable.find((candidate) => candidate.name === key);
    if (option === undefined) {
      const names = usable.map((candidate) => candidate.name);
      const guess = nearest(key, names);
      throw usageError(
        `unknown setting ${source}`,
        guess === null ? `known: ${names.join(', ')}` : `did you mean "${guess}"?`,
      );
    }
    const values = scalars(value);
    if (values === null || (option.kind.type !== 'list' && values.length !== 1)) {
      const want =
        option.kind.type === 'list' ? 'a string or an array of strings' : 'a string, a number, true or false';
      throw usageError(`${source} is ${JSON.stringify(value)}`, `${want} is wanted`);
    }
    layer.set(key, { values, source });
  }
  return layer;
}

function parseObject(content: string, path: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(content);
  } catch (error) {
    throw usageError(`${path} is not JSON: ${error instanceof Error ? error.message : String(error)}`, null);
  }
  if (isObject(value)) return value;
  throw usageError(`${path} is not a JSON object`, 'write settings as {"np": 4, "hostfile": "hosts"}');
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function scalars(value: unknown): string[] | null {
  const items: unknown[] = Array.isArray(value) ? value : [value];
  const texts: string[] = [];
  for (const item of items) {
    if (typeof item !== 'string' && typeof item !== 'number' && typeof item !== 'boolean') return null;
    texts.push(String(item));
  }
  return texts;
}
