/** docs/batch.schema.json, by which editors complete batch files, from the schema that checks them. `npm run docs` writes it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { toJsonSchema } from '@valibot/to-json-schema';
import { aliases } from '../launcher/batch/file/keys.ts';
import { batchSchema } from '../launcher/batch/file/schema.ts';

const file = join(import.meta.dirname, '../docs/batch.schema.json');

type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** The file's content as it should be. */
export function batchJsonSchema(): string {
  const schema: Json = JSON.parse(JSON.stringify(toJsonSchema(batchSchema, { typeMode: 'input' })));
  const whole = isObject(schema) ? { title: 'File of ncclrun batch', ...schema } : schema;
  return `${JSON.stringify(withAliases(whole), null, 2)}\n`;
}

/** Every key also by its other words, and each of these with dashes. */
function withAliases(json: Json): Json {
  if (isList(json)) return json.map(withAliases);
  if (!isObject(json)) return json;
  const entries = Object.entries(json).map(([key, value]): [string, Json] => [key, withAliases(value)]);
  const { properties } = json;
  if (properties === undefined || !isObject(properties)) return Object.fromEntries(entries);
  const all = Object.entries(properties).flatMap(([key, value]): [string, Json][] =>
    wordsOf(key, json).map((word) => [word, word === key ? withAliases(value) : likeKey(key, value)]),
  );
  return Object.fromEntries(
    entries.map(([key, value]) => [key, key === 'properties' ? Object.fromEntries(all) : value]),
  );
}

/** A batch's own name has no other word: a job's does. */
function wordsOf(key: string, owner: { readonly [key: string]: Json }): string[] {
  const { properties } = owner;
  const isBatch = properties !== undefined && isObject(properties) && properties['jobs'] !== undefined;
  const words = [key, ...(isBatch ? [] : (aliases[key] ?? []))];
  return [...new Set(words.flatMap((word) => [word, word.replaceAll('_', '-')]))];
}

function likeKey(key: string, value: Json): Json {
  return isObject(value) ? { ...value, description: `Same as ${key}` } : value;
}

function isList(json: Json): json is readonly Json[] {
  return Array.isArray(json);
}

function isObject(json: Json): json is { readonly [key: string]: Json } {
  return typeof json === 'object' && json !== null && !Array.isArray(json);
}

if (process.argv[1] === import.meta.filename) writeFileSync(file, batchJsonSchema());
