/** Reads a topology file. */
import { parseXml, XmlComment, XmlDocumentType, XmlElement, XmlError, XmlText } from '@rgrove/parse-xml';
import { printableLine } from '../printable.ts';
import { TopologyError } from './element.ts';
import type { Child, Element, Location } from './element.ts';

/** A file of this size has more than a hundred thousand elements. */
const MAX_CHARACTERS = 16 * 1024 * 1024;

/** The beginnings and ends of elements. 64 channels of 576 GPUs, for each of four patterns, have half as many. */
const MAX_TAGS = 300_000;

/** A real one has less than ten levels. */
const MAX_DEPTH = 100;

/** The root element of the file, with the comments before and inside it. `source` names it in messages. */
export interface Document {
  readonly root: Element;
  readonly comments: readonly string[];
}

/** Throws a TopologyError with line, column and reason. */
export function readXml(xml: string, source: string): Document {
  if (xml.length > MAX_CHARACTERS) {
    throw new TopologyError(`${source}: ${xml.length} characters are more than any topology has (${MAX_CHARACTERS})`);
  }
  if (countOf(xml, '<') > MAX_TAGS)
    throw new TopologyError(`${source}: has more than ${MAX_TAGS} tags, which no topology has`);
  const locations = new LocationFinder(xml, source);
  const document = parsed(xml, source);
  const comments: string[] = [];
  let root: Element | null = null;
  for (const child of document) {
    if (child instanceof XmlDocumentType) {
      const { line, column } = locations.at(child.start);
      throw new TopologyError(`${source}:${line}:${column}: a document type is not read here: take <!DOCTYPE …> out`);
    }
    if (child instanceof XmlComment && root === null) comments.push(child.content);
    if (child instanceof XmlElement) root = convert(child, locations, 1);
  }
  if (root === null) throw new TopologyError(`${source}: there is no element`);
  return { root, comments };
}

function countOf(text: string, character: string): number {
  let count = 0;
  for (let at = text.indexOf(character); at !== -1; at = text.indexOf(character, at + 1)) count += 1;
  return count;
}

function parsed(xml: string, source: string): ReturnType<typeof parseXml>['children'] {
  try {
    return parseXml(xml, { includeOffsets: true, preserveComments: true, preserveDocumentType: true }).children;
  } catch (error) {
    // The parser recurses.
    if (error instanceof RangeError) throw new TopologyError(`${source}: elements are nested without end`);
    if (!(error instanceof XmlError)) throw error;
    const [reason = 'no XML'] = error.message.split('\n');
    throw new TopologyError(
      `${source}:${error.line}:${error.column}: ${reason.replace(/ \(line \d+, column \d+\)$/u, '')}`,
    );
  }
}

function convert(from: XmlElement, locations: LocationFinder, depth: number): Element {
  const location = locations.at(from.start);
  if (depth > MAX_DEPTH) {
    const { source, line, column } = location;
    throw new TopologyError(`${source}:${line}:${column}: elements are nested more than ${MAX_DEPTH} deep`);
  }
  const children: Child[] = [];
  for (const child of from.children) {
    if (child instanceof XmlElement) children.push(convert(child, locations, depth + 1));
    else if (child instanceof XmlComment) children.push({ kind: 'comment', text: child.content });
    else if (child instanceof XmlText && child.text.trim() !== '') {
      const { source, line, column } = locations.at(child.start);
      throw new TopologyError(
        `${source}:${line}:${column}: text inside <${from.name}>: "${child.text.trim().slice(0, 40)}"`,
      );
    }
  }
  const attributes = new Map(Object.entries(from.attributes));
  checkCharacters(from.name, attributes, location);
  return { kind: 'element', name: from.name, attributes, children, location };
}

/** Names of devices are shown to people and written into files of other tools: none has a character that is no part of a text. */
function checkCharacters(
  of: string,
  attributes: ReadonlyMap<string, string>,
  { source, line, column }: Location,
): void {
  for (const [name, value] of attributes) {
    if (printableLine(value) === value) continue;
    throw new TopologyError(`${source}:${line}:${column}: <${of}>: ${name}="${value}" has a control character`);
  }
}

/** Lines and columns of offsets that only rise. */
class LocationFinder {
  readonly #xml: string;
  readonly #source: string;
  #line = 1;
  #lineStart = 0;

  constructor(xml: string, source: string) {
    this.#xml = xml;
    this.#source = source;
  }

  at(offset: number): Location {
    for (;;) {
      const end = this.#xml.indexOf('\n', this.#lineStart);
      if (end === -1 || end >= offset) break;
      this.#lineStart = end + 1;
      this.#line += 1;
    }
    return { source: this.#source, line: this.#line, column: offset - this.#lineStart + 1 };
  }
}
