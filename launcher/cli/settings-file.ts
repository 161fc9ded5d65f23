/** Settings from ./ncclrun.json and $XDG_CONFIG_HOME/ncclrun/config.json: one object, keys are option names. */
import { isAbsolute, join } from 'node:path';
import { readTrusted, type TrustedRead } from '../../control/trusted-file.ts';
import { JsonMistake, parseJsonSource, positionOf, type JsonNode } from './json-source.ts';
import { nearest } from '../text/nearest.ts';
import { isSetting, type Option } from '../model/option.ts';
import { type Project, whyNotInProject } from './project-rules.ts';
import type { Refusal } from './refusal.ts';
import type { Setting, SettingsLayer } from './settings.ts';
import { usageError } from '../model/usage-error.ts';

/** Every option takes some 50 bytes. */
const MAX_BYTES = 1024 * 1024;

/** `project`: it lies where the user stands, and may be part of somebody else's project. */
interface SettingsFile {
  readonly kind: 'project' | 'user';
  readonly path: string;
}

export interface ReadSettings {
  readonly file: SettingsFile;
  readonly found: boolean;
  readonly layer: SettingsLayer;
  readonly refusals: readonly Refusal[];
}

/** The files that are looked for, the stronger one first. A directory in the environment counts where it is absolute: another would be the project's. */
export function settingsFiles(environment: Readonly<Record<string, string | undefined>>): SettingsFile[] {
  const absolute = (name: string) => [environment[name] ?? ''].filter(isAbsolute);
  const [base] = [...absolute('XDG_CONFIG_HOME'), ...absolute('HOME').map((home) => join(home, '.config'))];
  const project = { kind: 'project', path: 'ncclrun.json' } as const;
  return base === undefined ? [project] : [project, { kind: 'user', path: join(base, 'ncclrun', 'config.json') }];
}

/**
 * `all` are the options of every command (a file serves them all). A missing file is empty, and so is one that others may have written. Throws a
 * FailureError (usage) for what is wrong in a file.
 */
export function readSettingsFile(file: SettingsFile, all: readonly Option[], uid: number): ReadSettings {
  const read = readTrusted(file.path, uid, MAX_BYTES);
  if (read.kind === 'missing') return { file, found: false, layer: new Map(), refusals: [] };
  if (read.kind !== 'content') return { file, found: true, layer: new Map(), refusals: [refusalOf(read, file.path)] };
  const project = file.kind === 'project' ? { directory: process.cwd(), uid } : null;
  return { file, found: true, ...layerOfJson(read.content, file.path, all, project) };
}

function refusalOf(read: Exclude<TrustedRead, { kind: 'missing' | 'content' }>, path: string): Refusal {
  switch (read.kind) {
    case 'untrusted': {
      const remedy = 'to use it, make it and the directories above it yours, and writable by you alone';
      return { kind: 'file', path, reason: read.reason, remedy };
    }
    case 'unfit':
      return { kind: 'file', path, reason: read.reason, remedy: 'settings are written as a JSON object' };
    case 'unreadable':
      throw usageError(`cannot read the settings in ${path}: ${read.code}`, 'make it readable or remove it');
    default:
      return read satisfies never;
  }
}

/** `project` is true for a project file. Throws a FailureError (usage) with the position in the file. */
export function layerOfJson(
  content: string,
  path: string,
  all: readonly Option[],
  project: Project | null,
): Pick<ReadSettings, 'layer' | 'refusals'> {
  const usable = all.filter(isSetting);
  const layer = new Map<string, Setting>();
  const refusals: Refusal[] = [];
  const seen = new Set<string>();
  for (const { key, at, value } of entriesOf(content, path)) {
    const option = usable.find((candidate) => candidate.name === key);
    if (option === undefined) {
      throw usageError(`unknown setting "${key}"`, knownSettings(key, usable), positionOf(path, content, at));
    }
    const position = positionOf(path, content, value);
    const items = scalars(value);
    if (items === null || (option.kind.type !== 'list' && items.length !== 1)) {
      const want =
        option.kind.type === 'list' ? 'a string or an array of strings' : 'a string, a number, true or false';
      throw usageError(`"${key}" is ${content.slice(value.start, value.end)}`, `${want} is wanted`, position);
    }
    if (seen.has(key))
      throw usageError(`"${key}" stands here a second time`, 'leave one of them', positionOf(path, content, at));
    seen.add(key);
    const values: string[] = [];
    for (const { node, text } of items) {
      const reason = project === null ? null : whyNotInProject(option.project, text, project);
      if (reason === null) values.push(text);
      else refusals.push({ kind: 'value', option, value: text, position: positionOf(path, content, node), reason });
    }
    const nothingLeft = values.length === 0 && items.length > 0;
    if (!nothingLeft) layer.set(key, { values, origin: 'file', source: `"${key}" in ${path}`, position });
  }
  return { layer, refusals };
}

/** A key may be misspelt, or be the name of a flag or variable. */
function knownSettings(key: string, usable: readonly Option[]): string {
  const bare = key.replace(/^--?/u, '');
  const same = usable.find(
    ({ flags, environment }) =>
      flags.some((flag) => flag.replace(/^--?/u, '') === bare) || environment.some((variable) => variable === key),
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

function scalars(node: JsonNode): { readonly node: JsonNode; readonly text: string }[] | null {
  const items: { node: JsonNode; text: string }[] = [];
  for (const item of node.type === 'array' ? node.items : [node]) {
    if (item.type !== 'string' && item.type !== 'number' && item.type !== 'boolean') return null;
    items.push({ node: item, text: String(item.value) });
  }
  return items;
}
