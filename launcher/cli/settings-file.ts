/** Settings from ./ncclrun.json and $XDG_CONFIG_HOME/ncclrun/config.json: one object, keys are option names. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { type JsonNode, JsonMistake, parseJsonSource, positionOf } from './json-source.ts';
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

/** Throws a FailureError (usage) that points at the place in the file. */
export function layerOfJson(content: string, path: string, all: readonly Option[]): SettingsLayer {
  const usable = all.filter((option) => option.environment.length > 0);
  const layer = new Map<string, Setting>();
  for (const { key, at, value } of entriesOf(content, path)) {
    const option = usable.find((candidate) => candidate.name === key);
    if (option === undefined) {
      throw usageError(`unknown setting "${key}"`, knownSettings(key, usable), positionOf(path, content, at));
    }
    const position = positionOf(path, content, value);
    const values = scalars(value);
    if (values === null || (option.kind.type !== 'list' && values.length !== 1)) {
      const want =
        option.kind.type === 'list' ? 'a string or an array of strings' : 'a string, a number, true or false';
      throw usageError(`"${key}" is ${content.slice(value.start, value.end)}`, `${want} is wanted`, position);
    }
    if (layer.has(key))
      throw usageError(`"${key}" stands here a second time`, 'leave one of them', positionOf(path, content, at));
    layer.set(key, { values, place: 'file', source: `"${key}" in ${path}`, position });
  }
  return layer;
}

/** A key may be misspelt, or be the name of a flag or variable. */
function knownSettings(key: string, usable: readonly Option[]): string {
  const bare = key.replace(/^--?/u, '');
  const same = usable.find(
    ({ flags, environment }) => flags.some((flag) => flag.replace(/^--?/u, '') === bare) || environment.includes(key),
  );
  const names = usable.map(({ name }) => name);
  const guess = same?.name ?? nearest(bare.toLowerCase().replaceAll('_', '-'), names);
  return guess === null ? `known: ${[...new Set(names)].join(', ')}` : `did you mean "${guess}"?`;
}

function entriesOf(content: string, path: string): Extract<JsonNode, { type: 'object' }>['entries'] {
  let node: JsonNode;
  try {
    node = parseJsonSource(content);
  } catch (error) {
    if (!(error instanceof JsonMistake)) throw error;
    throw usageError(error.message, `${path} must hold JSON`, positionOf(path, content, error.span));
  }
  if (node.type === 'object') return node.entries;
  throw usageError(
    'the settings are not a JSON object',
    'write settings as {"np": 4, "hostfile": "hosts"}',
    positionOf(path, content, node),
  );
}

function scalars(node: JsonNode): string[] | null {
  const texts: string[] = [];
  for (const item of node.type === 'array' ? node.items : [node]) {
    if (item.type !== 'string' && item.type !== 'number' && item.type !== 'boolean') return null;
    texts.push(String(item.value));
  }
  return texts;
}
