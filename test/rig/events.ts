/** Reads the lines of --events and holds them against the documented schema, to the letter. */
import { readFileSync } from 'node:fs';
import { constants } from 'node:os';
import { eventSchema, type FieldKind } from '../../launcher/report/event-schema.ts';

const phases = ['allocate', 'connect', 'hello', 'spawn', 'run', 'teardown'];
const isText = (value: unknown): boolean => typeof value === 'string';
const isNumber = (value: unknown): boolean => typeof value === 'number' && Number.isFinite(value);
const isSignal = (value: unknown): boolean => typeof value === 'string' && Object.hasOwn(constants.signals, value);
const listOf = (check: (value: unknown) => boolean) => (value: unknown) => Array.isArray(value) && value.every(check);

const checks: Readonly<Record<FieldKind, (value: unknown) => boolean>> = {
  text: isText,
  texts: listOf(isText),
  'lists of texts': listOf(listOf(isText)),
  number: isNumber,
  numbers: listOf(isNumber),
  'number or null': (value) => value === null || isNumber(value),
  boolean: (value) => typeof value === 'boolean',
  phase: (value) => phases.some((phase) => phase === value),
  signal: isSignal,
  'signal or null': (value) => value === null || isSignal(value),
  failure: (value) => typeof value === 'object' && value !== null && 'type' in value && isText(value.type),
  blamed: (value) => Array.isArray(value),
  stacks: (value) => Array.isArray(value),
  verdict: (value) => typeof value === 'object' && value !== null && 'kind' in value && isText(value.kind),
};

/** Types of the events in the file, in order. Throws an Error that shows the first line which is not as documented. */
export function readEvents(path: string): string[] {
  const text = readFileSync(path, 'utf8');
  if (!text.endsWith('\n')) throw new Error(`the last line is cut: ${text.slice(-100)}`);
  return text.trimEnd().split('\n').map(checkedType);
}

function checkedType(line: string): string {
  const event: unknown = JSON.parse(line);
  if (typeof event !== 'object' || event === null) throw new Error(`no object: ${line}`);
  const { schemaVersion, type, time, ...fields } = { schemaVersion: null, type: null, time: null, ...event };
  const described = Object.entries(eventSchema).find(([name]) => name === type);
  if (described === undefined || schemaVersion !== 1 || !Number.isInteger(time)) throw new Error(`unknown: ${line}`);
  const [name, { fields: kinds }] = described;
  const wanted = Object.entries<FieldKind>(kinds);
  const names = wanted.map(([field]) => field);
  const extra = Object.keys(fields).filter((field) => !names.includes(field));
  if (extra.length > 0) throw new Error(`${extra.join(', ')} in ${line}`);
  const values = new Map<string, unknown>(Object.entries(fields));
  for (const [field, kind] of wanted) {
    if (!checks[kind](values.get(field))) throw new Error(`${field} should be ${kind} in ${line}`);
  }
  return name;
}
