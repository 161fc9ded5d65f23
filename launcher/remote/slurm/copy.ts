/** Hosts of a Slurm job that lack ncclrun get a copy: a step of its own sends the archive to all of them at once. */
import { FailureError } from '../../model/failure-error.ts';
import type { AgentFailure } from '../../model/failure.ts';
import type { HostSlots } from '../../model/types.ts';
import { archive } from '../staging/archive.ts';
import { stagingFailure } from '../staging/failure.ts';
import type { InstallationIdentity } from '../staging/identity.ts';
import { StagingRefusal } from '../staging/protocol.ts';
import { messagesOfTasks, statusByHost } from './srun-error.ts';
import { startStep, type Tool } from './srun.ts';
import { copyTask, refusalOf } from './tasks.ts';

interface CopyOptions {
  readonly hosts: readonly HostSlots[];
  /** Names of those that are known to lack it. */
  readonly lacking: readonly string[];
  readonly identity: InstallationIdentity;
  /** A copy of so many bytes goes to each; that ends when the tool is killed. */
  readonly onBegin: (tool: Tool, bytes: number) => void;
}

/** Resolves to why hosts got no copy. @throws ConnectionError if srun cannot be started */
export async function copyToHosts({
  hosts,
  lacking,
  identity,
  onBegin,
}: CopyOptions): Promise<ReadonlyMap<string, AgentFailure>> {
  const found = await archiveFile(identity);
  if ('failure' in found) return new Map(lacking.map((name) => [name, found.failure(name)]));
  const tool = startStep({ hosts, task: copyTask(identity), together: false, input: found.file });
  onBegin(tool, found.bytes.length);
  tool.open({ frame: () => undefined, closed: () => undefined });
  const { stderr } = await tool.died;
  tool.release();
  const messages = messagesOfTasks(stderr);
  return new Map(
    Array.from(statusByHost(stderr), ([name, status]) => [
      name,
      stagingFailure(name, refusalOf(status) ?? StagingRefusal.unpack, messages),
    ]),
  );
}

type Found = { readonly file: string; readonly bytes: Buffer } | { readonly failure: (host: string) => AgentFailure };

async function archiveFile(identity: InstallationIdentity): Promise<Found> {
  try {
    const { kept, bytes } = await archive('gzip', identity);
    if ('file' in kept) return { file: kept.file, bytes };
    return failing(`the archive cannot be kept: ${kept.why}`, 'make room in ~/.cache/ncclrun, as your own directory');
  } catch (error) {
    if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw error;
    return failing(error.failure.message, error.failure.remedy);
  }
}

function failing(message: string, remedy: string | null): Found {
  return { failure: (host) => ({ type: 'agent', host, phase: 'hello', message, remedy }) };
}
