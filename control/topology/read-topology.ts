/** Reads files of topologies and of graphs, and checks what they are. */
import { checkTopology } from './check.ts';
import { locationOf, TopologyError } from './element.ts';
import type { Element } from './element.ts';
import { readXml } from './read-xml.ts';
import type { Document } from './read-xml.ts';

/** `source` names the file in messages. @throws TopologyError with file, line, column and reason */
export function readTopology(xml: string, source: string): Document {
  const document = readXml(withoutMark(xml), source);
  checkTopology(document.root);
  return document;
}

/** Graphs in NCCL's form (NCCL_GRAPH_FILE). Whether they suit a machine is known when they are used. @throws TopologyError likewise */
export function readGraphsXml(xml: string, source: string): Element {
  const { root } = readXml(withoutMark(xml), source);
  if (root.name === 'graphs') return root;
  const topology = root.name === 'system' ? '; this is a topology, for NCCL_TOPO_FILE' : '';
  throw new TopologyError(`${locationOf(root)}: a file of graphs begins with <graphs>${topology}`);
}

/** The byte order mark that some editors write. */
function withoutMark(xml: string): string {
  return xml.replace(/^\uFEFF/u, '');
}
