/** NCCL's topology files: reads NCCL_TOPO_FILE and writes NCCL_TOPO_DUMP_FILE. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readFileUpTo } from '../../control/read-file.ts';
import { TopologyError } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { fuse } from '../../control/topology/fuse.ts';
import { readGraphsXml, readTopology } from '../../control/topology/read-topology.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { detectTopology } from './detect.ts';
import type { Detected, DetectOptions, Probes } from './detect.ts';
import { messageOf } from '../../control/message-of.ts';

/** More than any topology has; a device such as /dev/zero has no end. */
const MAX_BYTES = 17 * 1024 * 1024;

/** A hypervisor's description of the physical machine; NCCL reads it if no file is named. */
const VIRTUAL = 'var/run/nvidia-topologyd/virtualTopology.xml';

/** A topology file's root, checked. @throws TopologyError with file, line, column and reason */
export function readTopologyFile(path: string): Element {
  return readTopology(contentOf(path), path).root;
}

/** A file of graphs in NCCL's form (NCCL_GRAPH_FILE). @throws TopologyError */
export function readGraphsFile(path: string): Element {
  return readGraphsXml(contentOf(path), path);
}

/**
 * Returns this host's topology: that of `file` (null if none is named), completed by detection. NVIDIA's file about a virtual machine counts as
 * named.
 * @throws TopologyError
 */
export async function hostTopologySystem(
  probes: Probes,
  file: Element | null,
  options: DetectOptions = {},
): Promise<Detected> {
  const { system, notes } = await detectTopology(probes, options);
  const given = file ?? virtualMachine(options.root ?? '/');
  return given === null ? { system, notes } : { system: fuse(given, system), notes };
}

/** @throws TopologyError: it cannot be written */
export function dumpTopology(path: string, system: Element): void {
  try {
    writeFileSync(path, writeXml(system));
  } catch (error) {
    throw new TopologyError(`${path}: ${reasonOf(error)}`);
  }
}

function virtualMachine(root: string): Element | null {
  const path = join(root, VIRTUAL);
  try {
    return readTopologyFile(path);
  } catch (error) {
    if (error instanceof UnreadableError) return null;
    throw error;
  }
}

/** There is no such file, or it may not be read. */
class UnreadableError extends TopologyError {}

function contentOf(path: string): string {
  try {
    return readFileUpTo(path, MAX_BYTES).toString('utf8');
  } catch (error) {
    throw new UnreadableError(`${path}: ${reasonOf(error)}`);
  }
}

/** The system's words without call and path: "no such file or directory". */
function reasonOf(error: unknown): string {
  const message = messageOf(error);
  return /^E[A-Z]+: ([^,]+)/u.exec(message)?.[1] ?? message;
}
