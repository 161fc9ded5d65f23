/** A topology that `ncclrun topo --format json` has printed on another host. */
import { printableLine } from '../../control/printable.ts';
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { FailureError } from '../model/failure-error.ts';
import { readNetworkPlugin } from './network-plugin.ts';
import type { NetworkPlugin } from './network-plugin.ts';
import { readVerbsViews } from './verbs.ts';
import type { VerbsPortView } from './verbs.ts';

export interface PrintedTopology {
  readonly system: Element;
  /** What the host could not find out. */
  readonly notes: readonly string[];
  readonly verbs: readonly VerbsPortView[];
  /** Null: it has none. */
  readonly networkPlugin: NetworkPlugin | null;
}

/** Reads what was printed on `host`. Throws a FailureError (agent) for what `--format json` does not print. */
export function readPrintedTopology(text: string, host: string): PrintedTopology {
  const document = parsed(text);
  const system = fieldOf(document, 'system');
  const notes = fieldOf(document, 'notes');
  const root = elementOf(system);
  if (root !== null && Array.isArray(notes)) {
    const verbs = readVerbsViews(fieldOf(document, 'verbs'));
    const networkPlugin = readNetworkPlugin(fieldOf(document, 'networkPlugin'));
    return { system: root, notes: notes.filter((note) => typeof note === 'string'), verbs, networkPlugin };
  }
  const message = `ncclrun topo printed no topology there: ${JSON.stringify(text.slice(0, 80))}`;
  throw new FailureError({
    type: 'agent',
    host,
    phase: 'run',
    message,
    remedy: `see what ncclrun topo prints on ${host}`,
  });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function fieldOf(value: unknown, name: string): unknown {
  return typeof value === 'object' && value !== null ? Object.getOwnPropertyDescriptor(value, name)?.value : undefined;
}

/** As json.ts writes it; null: it is none. */
function elementOf(value: unknown): Element | null {
  const name = fieldOf(value, 'name');
  const attributes = fieldOf(value, 'attributes');
  const children = fieldOf(value, 'children');
  if (typeof name !== 'string' || typeof attributes !== 'object' || attributes === null || !Array.isArray(children))
    return null;
  const entries = Object.entries(attributes).map(([key, text]) => [key, printableLine(String(text))]);
  const elements = children.map(elementOf);
  const whole = elements.filter((child) => child !== null);
  return whole.length < elements.length ? null : element(name, Object.fromEntries(entries), whole);
}
