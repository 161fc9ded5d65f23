/** JSON whose values know where they stand in the text, so that a settings file's mistakes can be pointed at. The language is JSON.parse's. */
import type { SourcePosition } from '../model/failure.ts';

/** Offsets count UTF-16 units from the text's beginning; `end` is exclusive. */
interface Span {
  readonly start: number;
  readonly end: number;
}

export type JsonNode = Span &
  (
    | { readonly type: 'object'; readonly entries: readonly { readonly key: string; at: Span; value: JsonNode }[] }
    | { readonly type: 'array'; readonly items: readonly JsonNode[] }
    | { readonly type: 'string'; readonly value: string }
    | { readonly type: 'number'; readonly value: number }
    | { readonly type: 'boolean'; readonly value: boolean }
    | { readonly type: 'null' }
  );

/** What is wrong, and where. */
export class JsonMistake extends Error {
  readonly span: Span;

  constructor(message: string, span: Span) {
    super(message);
    this.span = span;
  }
}

const deepest = 100;
const token =
  /[{}[\],:]|"(?:[^"\\\n]|\\.)*"|-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?(?![0-9a-zA-Z_.])|[a-zA-Z_][\w.-]*/uy;

/** Throws a JsonMistake. */
export function parseJsonSource(text: string): JsonNode {
  const reader = new Reader(text.charCodeAt(0) === 0xfeff ? ` ${text.slice(1)}` : text);
  const node = reader.value(0);
  const rest = reader.next();
  if (rest !== null) throw new JsonMistake(`nothing may follow the value`, rest);
  return node;
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  next(): (Span & { readonly word: string }) | null {
    while (/[ \t\r\n]/u.test(this.#text[this.#at] ?? '')) this.#at += 1;
    const start = this.#at;
    if (start === this.#text.length) return null;
    token.lastIndex = start;
    const word = token.exec(this.#text)?.[0];
    if (word === undefined) throw this.#strange(start);
    this.#at = start + word.length;
    return { start, end: this.#at, word };
  }

  #strange(start: number): JsonMistake {
    const [line = ''] = this.#text.slice(start).split('\n', 1);
    if (line.startsWith('"'))
      return new JsonMistake('the string does not end on its line', {
        start,
        end: start + line.length,
      });
    if (line.startsWith('//') || line.startsWith('/*') || line.startsWith('#'))
      return new JsonMistake('JSON has no comments', { start, end: start + line.length });
    if (line.startsWith("'")) return new JsonMistake('JSON wants double quotes', { start, end: start + 1 });
    const word = /^[^\s,:{}[\]"]+/u.exec(line)?.[0] ?? line.slice(0, 1);
    return new JsonMistake(`${JSON.stringify(word)} is not JSON`, { start, end: start + word.length });
  }

  #must(wanted: string): Span & { readonly word: string } {
    const found = this.next();
    if (found !== null) return found;
    const start = this.#text.trimEnd().length;
    throw new JsonMistake(`the file ends where ${wanted} is wanted`, { start, end: start });
  }

  value(depth: number): JsonNode {
    const { start, end, word } = this.#must('a value');
    if (depth > deepest) throw new JsonMistake('nested too deeply', { start, end });
    if (word === '{') return this.#object(start, depth);
    if (word === '[') return this.#array(start, depth);
    if (word.startsWith('"')) return { type: 'string', start, end, value: stringOf({ start, end, word }) };
    if (word === 'true' || word === 'false') return { type: 'boolean', start, end, value: word === 'true' };
    if (word === 'null') return { type: 'null', start, end };
    if (/^[-0-9]/u.test(word)) return { type: 'number', start, end, value: Number(word) };
    const why = /^[a-zA-Z_]/u.test(word) ? `text stands in double quotes: "${word}"` : `a value is wanted, not ${word}`;
    throw new JsonMistake(why, { start, end });
  }

  #object(start: number, depth: number): JsonNode {
    const entries: { key: string; at: Span; value: JsonNode }[] = [];
    for (let word = this.#must('"key" or }'); word.word !== '}' || entries.length > 0; word = this.#must('"key"')) {
      if (!word.word.startsWith('"')) throw new JsonMistake(wrongKey(word.word), word);
      const colon = this.#must(':');
      if (colon.word !== ':') throw new JsonMistake(`a : is wanted, not ${colon.word}`, colon);
      entries.push({ key: stringOf(word), at: word, value: this.value(depth + 1) });
      const after = this.#must(', or }');
      if (after.word === '}') break;
      if (after.word !== ',') throw new JsonMistake(`a , or } is wanted, not ${after.word}`, after);
    }
    return { type: 'object', start, end: this.#at, entries };
  }

  #array(start: number, depth: number): JsonNode {
    const items: JsonNode[] = [];
    const begin = this.#at;
    if (this.#must('a value or ]').word === ']') return { type: 'array', start, end: this.#at, items };
    this.#at = begin;
    for (;;) {
      items.push(this.value(depth + 1));
      const after = this.#must(', or ]');
      if (after.word === ']') return { type: 'array', start, end: this.#at, items };
      if (after.word !== ',') throw new JsonMistake(`a , or ] is wanted, not ${after.word}`, after);
    }
  }
}

function wrongKey(word: string): string {
  return word === '}' ? 'no comma may stand before }' : `a key in double quotes is wanted, not ${word}`;
}

function stringOf({ start, end, word }: Span & { readonly word: string }): string {
  try {
    return String(JSON.parse(word));
  } catch {
    throw new JsonMistake('the string holds a wrong \\ or a control character', { start, end });
  }
}

export function positionOf(source: string, text: string, { start, end }: Span): SourcePosition {
  const before = text.slice(0, start).split('\n');
  const column = (before.at(-1) ?? '').length + 1;
  const line = (text.split('\n')[before.length - 1] ?? '').replace(/\r$/u, '');
  return {
    source,
    line: before.length,
    column,
    text: line,
    length: Math.max(1, Math.min(end - start, line.length - column + 1)),
  };
}
