/** Topology files as users give them. */
import { readFileUpTo, TooLargeError } from '../../control/read-file.ts';
import { readGraphsXml, readTopology } from '../../control/topology/read-topology.ts';
import type { Document } from '../../control/topology/read-xml.ts';
import { TopologyError } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { usageError } from '../model/usage-error.ts';
import { FailureError } from '../model/failure-error.ts';
import { messageOf } from '../../control/message-of.ts';

/** More than any topology has; a device such as /dev/zero has no end. */
const MAX_BYTES = 17 * 1024 * 1024;

/** `path`: - is standard input. Throws a FailureError (usage) where there is no such file or it is none. */
export function readUserTopologyFile(path: string): Document {
  const source = path === '-' ? 'standard input' : path;
  return checked(() => readTopology(textOf(path, source), source));
}

/** The file of graphs that a variable names. Throws a FailureError (usage) that begins with the variable. */
export function readUserGraphsFile(variable: string, path: string): Element {
  try {
    return checked(() => readGraphsXml(textOf(path, path), path));
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    throw usageError(`${variable}: ${error.message}`, `correct the file, or unset ${variable}`);
  }
}

/** Runs what reads a topology; what is wrong with it becomes a FailureError (usage). */
export function checked<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof TopologyError)) throw error;
    throw usageError(
      shortened(error.message),
      'correct it there; NCCL writes topologies with NCCL_TOPO_DUMP_FILE=FILE, graphs with NCCL_GRAPH_DUMP_FILE=FILE',
    );
  }
}

function textOf(path: string, source: string): string {
  try {
    return readFileUpTo(path === '-' ? 0 : path, MAX_BYTES).toString('utf8');
  } catch (error) {
    throw unreadable(source, error);
  }
}

function unreadable(source: string, error: unknown): FailureError {
  if (error instanceof TooLargeError)
    return usageError(`${source} is no topology: it is too large`, 'name a file in NCCL’s XML');
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  const wanted = 'name a topology file, such as NCCL writes with NCCL_TOPO_DUMP_FILE=FILE';
  if (code === 'ENOENT') return usageError(`there is no file ${source}`, wanted);
  if (code === 'EISDIR') return usageError(`${source} is a directory`, wanted);
  if (code === 'EACCES') return usageError(`${source} may not be read`, 'make it readable, or name another file');
  return usageError(`${source} cannot be read: ${messageOf(error)}`, wanted);
}

const SHOWN = 300;

/** Damaged files hold anything, pages of text too. */
function shortened(message: string): string {
  return message.length > SHOWN ? `${message.slice(0, SHOWN)}…` : message;
}
