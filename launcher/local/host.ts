/** The agent of the launcher's own host runs in the launcher. This is the only file of the launcher that imports worker/. */
import { closeSync, openSync } from 'node:fs';
import { MemoryLink } from '../../control/link/memory-link.ts';
import type { Tables } from '../../control/planner/measured/tables.ts';
import { beginAgent } from '../../worker/agent/begin.ts';
import { openBootstrap } from '../../worker/agent/bootstrap-open.ts';
import {
  agentPath,
  dialPath,
  guardianPath,
  installationRoot,
  installedVersion,
  INVITED_AGENT,
  kernelsDirectory,
  lacksPackagedKernels,
  libraryPath,
  perfPath,
} from '../../worker/agent/installation.ts';
import type { HostCounters, HostReadings } from '../../control/readings.ts';
import { machineOf, type TogetherAnswer, type TogetherOrder } from '../../control/together.ts';
import type { FoundVerbs } from '../../control/messages/nic.ts';
import { hostFacts, type HostFacts } from '../../worker/agent/host-facts.ts';
import type { TuningListener } from '../../worker/agent/tuning.ts';
import { leave, loadNative, NativeLoadError } from '../../worker/engine/load.ts';
import { NativeLink } from '../../worker/engine/native-link.ts';
import type { Detected } from '../../worker/topology/detect.ts';
import { usageError } from '../model/usage-error.ts';
import type { StartAgent } from '../remote/shell/connection.ts';

export {
  agentPath,
  dialPath,
  INVITED_AGENT,
  installationRoot,
  installedVersion,
  kernelsDirectory,
  lacksPackagedKernels,
  leave,
  libraryPath,
  perfPath,
};

/** A running tool whose stdin and stdout carry frames; `changes` (NAME=value) to our environment are its alone. @throws NativeError if it cannot be started */
export function startTool(words: readonly string[], changes: readonly string[]): NativeLink {
  const native = loadNative();
  return new NativeLink(native, (onEvent) => native.toolStart(words, changes, onEvent));
}

/** A tool that reads nothing, to its end. Rejects with a NativeError if it cannot be started. */
export function runToolToEnd(
  words: readonly string[],
): Promise<{ readonly waitStatus: number; readonly output: string }> {
  return loadNative().toolRun(words);
}

/** What a tool wrote, on stdout and stderr alike; nothing if it could not be started. */
export async function runTool(words: readonly string[]): Promise<string> {
  try {
    return (await runToolToEnd(words)).output;
  } catch {
    return '';
  }
}

/** How many GPUs programs that start here can use at most: Infinity where CUDA_VISIBLE_DEVICES hides none. */
export async function mostVisibleGpus(): Promise<number> {
  if (process.env['CUDA_VISIBLE_DEVICES'] === undefined) return Number.POSITIVE_INFINITY;
  const { visibleGpus } = await import('../../worker/topology/gpus.ts');
  return visibleGpus().length;
}

/**
 * This machine's topology, as NCCL_TOPO_FILE and detection have it. Throws an error that says why the native addon cannot be loaded, or a
 * FailureError (usage) for a file that is no topology.
 */
export async function localTopology(): Promise<Detected> {
  const { hostTopologySystem, readTopologyFile } = await import('../../worker/topology/file.ts');
  const native = loadNative();
  const path = process.env['NCCL_TOPO_FILE'] ?? '';
  try {
    return await hostTopologySystem(native, path === '' ? null : readTopologyFile(path));
  } catch (error) {
    // The class is that of another bundle.
    if (!(error instanceof Error) || error.name !== 'TopologyError') throw error;
    throw usageError(error.message, 'correct the file, or unset NCCL_TOPO_FILE');
  }
}

/** This machine's InfiniBand and RoCE ports. */
export async function localVerbs(): Promise<FoundVerbs> {
  const { foundVerbs } = await import('../../worker/topology/host-verbs.ts');
  return foundVerbs(loadNative());
}

/** What `ncclrun doctor` reads on this host, which takes a little longer than `watchMs`; `data`: files whose reading is measured. */
export async function localReadings(version: string, watchMs: number, data: string | null): Promise<HostReadings> {
  const { collectReadings } = await import('../../worker/readings/collect.ts');
  return await collectReadings({ version, watchMs, data });
}

/** Those of its readings that may grow under load. */
export async function localCounters(): Promise<HostCounters> {
  const { collectCounters } = await import('../../worker/readings/collect.ts');
  return await collectCounters();
}

/** This host's part of what doctor has all hosts find out at once. */
export async function localTogether(order: TogetherOrder): Promise<TogetherAnswer> {
  const [{ lookTogether }, { readSystem }] = await Promise.all([
    import('../../worker/readings/together.ts'),
    import('../../worker/readings/system.ts'),
  ]);
  return await lookTogether(order, { machine: machineOf(readSystem('/')), directory: process.cwd() });
}

/** How the program ended, and what it printed, that looks for this machine's network plugin: plugins are strangers' code, which runs in a process of its own. */
export function localNetworkPlugin(): Promise<{ readonly waitStatus: number; readonly output: string }> {
  return runToolToEnd([perfPath, 'plugin']);
}

/** What was measured on this machine; null: nothing, or it is not wanted. */
export async function localTables(environment: NodeJS.ProcessEnv, listener: TuningListener): Promise<Tables | null> {
  const { findTables } = await import('../../worker/agent/tuning.ts');
  return findTables(environment, listener)();
}

/** As Native.prefixLines. */
export function prefixLines(
  ...call: readonly [target: Uint8Array, offset: number, bytes: Uint8Array, prefix: string, atLineStart: boolean]
): number {
  return loadNative().prefixLines(...call);
}

/** As Native.widenPipe. Without native code pipes stay as they are: commands that start nothing can do without. */
export function widenPipe(descriptor: number, bytes: number): void {
  try {
    loadNative().widenPipe(descriptor, bytes);
  } catch (error) {
    if (!(error instanceof NativeLoadError)) throw error;
  }
}

/** What this process prints goes to the end of that file from now on. Throws as node:fs and Native.replaceDescriptor do. */
export function redirectOutput(path: string): void {
  const file = openSync(path, 'a', 0o644);
  try {
    for (const descriptor of [1, 2]) loadNative().replaceDescriptor(descriptor, file);
  } finally {
    closeSync(file);
  }
}

/** As Native.blockSigusr1. Without native code it stays as it is: no job starts. */
export function blockSigusr1(blocked: boolean): void {
  try {
    loadNative().blockSigusr1(blocked);
  } catch (error) {
    if (!(error instanceof NativeLoadError)) throw error;
  }
}

/** As Native.tcpUserTimeout. */
export function tcpUserTimeout(descriptor: number, milliseconds: number): void {
  loadNative().tcpUserTimeout(descriptor, milliseconds);
}

/** As Native.tcpEnd. */
export function tcpEnd(descriptor: number): void {
  loadNative().tcpEnd(descriptor);
}

/** What this host's agent would say of it in its hello. */
export function localHostFacts(): HostFacts {
  return hostFacts(true, true);
}

/** What the agent of this host would report to a launcher of several hosts. */
export function localNetwork(): Pick<HostFacts, 'addresses' | 'nics' | 'hardware' | 'verbs'> {
  return hostFacts(false, false, undefined, loadNative());
}

/** Memory that anybody of the same user finds below /proc of this process, until it is released or the process ends. */
export function showMemory(bytes: Uint8Array, name: string): { release(): void } {
  const native = loadNative();
  const memory = native.sealedMemory(bytes, name);
  return { release: () => native.close(memory) };
}

/** Where others may reach this machine, best first. */
export function localAddresses(): readonly string[] {
  return hostFacts(false, false).addresses;
}

export const startLocalAgent: StartAgent = (_host, order, handler) => {
  const [ours, theirs] = MemoryLink.pair();
  const { promise: gone, resolve } = Promise.withResolvers<void>();
  const onEnded = (): void => {
    theirs.close();
    resolve();
  };
  const agent = beginAgent({ link: theirs, order, local: true, guardianPath, openBootstrap, onEnded });
  theirs.open({ frame: (frame) => agent?.receive(frame), closed: () => agent?.linkClosed() });
  ours.open({
    frame: (frame) => handler.frame(frame),
    closed: (problem) => handler.closed({ problem, failure: null }),
  });
  return {
    send: (frame) => ours.send(frame),
    close() {
      ours.close();
      return gone;
    },
  };
};
