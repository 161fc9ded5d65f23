/**
 * A machine in the form of NCCL's topology file: system / cpu / pci / gpu / nvlink / nic / net. Elements keep every attribute they came with,
 * also those that nobody here knows, so that what was read can be written again.
 */
export interface Element {
  readonly kind: 'element';
  readonly name: string;
  readonly attributes: Map<string, string>;
  readonly children: Child[];
  /** In the file it was read from; null: it was made here. */
  readonly location: Location | null;
}

interface Comment {
  readonly kind: 'comment';
  readonly text: string;
}

export type Child = Element | Comment;

export interface Location {
  /** File name, or another word for where the text came from. */
  readonly source: string;
  /** 0: not known, the text was written anew. */
  readonly line: number;
  readonly column: number;
}

/** Error in a topology; the message has the location, the value and what was expected. */
export class TopologyError extends Error {
  override readonly name = 'TopologyError';
}

export function element(
  name: string,
  attributes: Readonly<Record<string, string | number>> = {},
  children: Child[] = [],
): Element {
  const entries = Object.entries(attributes).map(([key, value]) => [key, String(value)] as const);
  return { kind: 'element', name, attributes: new Map(entries), children, location: null };
}

/** Child elements, of one name if it is given. */
export function elementsOf({ children }: Element, name?: string): Element[] {
  return children.filter(
    (child): child is Element => child.kind === 'element' && (name === undefined || child.name === name),
  );
}

/** The element itself and all below it, each before its children. */
export function* everyElement(root: Element): Generator<Element> {
  const waiting = [root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    yield next;
    for (let i = next.children.length - 1; i >= 0; i--) {
      const child = next.children[i];
      if (child?.kind === 'element') waiting.push(child);
    }
  }
}

/** "machine.xml:12:5: <gpu>", as messages begin. */
export function locationOf({ name, location }: Element): string {
  if (location === null) return `<${name}>`;
  return location.line === 0
    ? `${location.source}: <${name}>`
    : `${location.source}:${location.line}:${location.column}: <${name}>`;
}
