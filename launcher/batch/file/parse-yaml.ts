/** YAML 1.2 as values that know where they stand. */
import { isAlias, isMap, isScalar, isSeq, parseDocument, type Document } from 'yaml';
import { FailureError } from '../../model/failure-error.ts';
import type { Entry, Item, Scalar, Span } from './item.ts';
import type { Source } from './source.ts';
import { yamlMistake } from './yaml-mistake.ts';

/** Values that aliases may stand for in all: enough for any file by hand, too few to fill the memory. */
const maximumAliased = 10_000;

const deepest = 32;

/** Throws a FailureError (usage) with the place of what is no YAML, or of what a batch file does not need of it. */
export function parseYaml(source: Source): Item {
  const whole = { start: 0, end: source.text.length };
  let document: Document.Parsed;
  try {
    document = parseDocument(source.text, { prettyErrors: false, uniqueKeys: false, logLevel: 'error' });
  } catch (error) {
    // The parser's only way to throw is the end of its stack.
    if (error instanceof FailureError || !(error instanceof RangeError)) throw error;
    throw source.mistake(whole, 'the values are nested too deeply', `at most ${deepest} levels are possible`);
  }
  const [mistake] = [...document.errors, ...document.warnings].toSorted((one, other) => one.pos[0] - other.pos[0]);
  if (mistake !== undefined) throw yamlMistake(mistake, source);
  if (document.directives.yaml.version !== '1.2') {
    throw source.mistake(
      whole,
      `the file says YAML ${document.directives.yaml.version}`,
      'remove the line: YAML 1.2 is read',
    );
  }
  return new Converter(source).item(document.contents, whole, 0);
}

interface Anchored {
  readonly item: Item;
  /** Number of values in it. */
  readonly size: number;
}

class Converter {
  readonly #source: Source;
  readonly #anchors = new Map<string, Anchored>();
  /** Values so far, those that aliases stand for included. */
  #count = 0;
  #aliased = 0;

  constructor(source: Source) {
    this.#source = source;
  }

  /** `around` is where a value is missing. */
  item(node: unknown, around: Span, depth: number): Item {
    if (isAlias(node)) return this.#aliasOf(node.source, spanOf(node, around));
    const before = this.#count;
    this.#count += 1;
    const span = spanOf(node, around);
    if (depth > deepest) {
      throw this.#source.mistake(span, 'the values are nested too deeply', `at most ${deepest} levels are possible`);
    }
    const item = this.#valueOf(node, span, depth);
    if ((isMap(node) || isSeq(node) || isScalar(node)) && node.anchor !== undefined) {
      this.#anchors.set(node.anchor, { item, size: this.#count - before });
    }
    return item;
  }

  #valueOf(node: unknown, span: Span, depth: number): Item {
    if (isSeq(node)) return { ...span, type: 'list', items: node.items.map((one) => this.item(one, span, depth + 1)) };
    if (isMap(node)) return { ...span, type: 'map', entries: this.#entriesOf(node.items, span, depth) };
    if (!isScalar(node)) return { ...span, type: 'scalar', value: null, text: '' };
    const { value } = node;
    if (typeof value === 'string') return { ...span, type: 'scalar', value, text: value };
    if (typeof value === 'number' || typeof value === 'boolean') {
      return { ...span, type: 'scalar', value, text: node.source ?? String(value) };
    }
    return { ...span, type: 'scalar', value: null, text: '' };
  }

  #entriesOf(
    pairs: readonly { readonly key: unknown; readonly value: unknown }[],
    around: Span,
    depth: number,
  ): Entry[] {
    const entries = new Map<string, Entry>();
    for (const pair of pairs) {
      const key = this.#keyOf(pair.key, around, depth);
      const at = { start: key.start, end: key.end };
      const former = entries.get(key.text);
      if (former !== undefined) throw secondKey(former, at, this.#source);
      entries.set(key.text, { key: key.text, written: key.text, at, value: this.item(pair.value, at, depth + 1) });
    }
    return [...entries.values()];
  }

  #keyOf(node: unknown, around: Span, depth: number): Scalar {
    const span = spanOf(node, around);
    if (isScalar(node)) {
      const item = this.item(node, around, depth + 1);
      if (item.type === 'scalar' && item.value !== null) return item;
    }
    if (isMap(node) && this.#source.text.slice(span.start - 1, span.end + 1).startsWith('{{')) {
      const remedy = 'put a text that begins with "{" in quotes: "{{ x }}"';
      throw this.#source.mistake(span, 'a map stands where a key is expected', remedy);
    }
    throw this.#source.mistake(span, 'the key is not a text', 'a key is a word, as in "nodes: 2"');
  }

  #aliasOf(name: string, span: Span): Item {
    const found = this.#anchors.get(name);
    if (found === undefined) {
      const remedy = `write &${name} in front of an earlier value; a text that begins with * stands in quotes`;
      throw this.#source.mistake(span, `no earlier value has the anchor "${name}"`, remedy);
    }
    this.#aliased += found.size;
    this.#count += found.size;
    if (this.#aliased <= maximumAliased) return found.item;
    const message = `with *${name} the aliases stand for more than ${maximumAliased} values`;
    throw this.#source.mistake(span, message, 'write defaults: for what all jobs share');
  }
}

export function secondKey(former: Entry, at: Span, source: Source): Error {
  const line = source.lineOf(former.at.start);
  const word = source.text.slice(at.start, at.end);
  const same = word === former.written ? '' : ` (as "${former.written}")`;
  return source.mistake(at, `"${word}" appears twice: first in line ${line}${same}`, 'leave one of them');
}

function spanOf(node: unknown, around: Span): Span {
  if (!isAlias(node) && !isScalar(node) && !isMap(node) && !isSeq(node)) return around;
  const [start, end] = node.range ?? [around.start, around.end];
  return end > start ? { start, end } : around;
}
