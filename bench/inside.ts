/** Programs on hosts of a cluster that no launcher starts. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { ClusterHost } from '../test/rig/cluster.ts';

/** A program on a host of the cluster. The kernel shares the cores among sessions: this one goes before the machine's other work. */
export const inside = (host: ClusterHost, program: string, words: readonly string[]): string[] => [
  'sh',
  '-c',
  'echo -18 2>/dev/null >/proc/self/autogroup; exec "$@"',
  'sh',
  'nsenter',
  '--target',
  String(host.init),
  '--all',
  '--',
  program,
  ...words,
];

/** Starts `argv`; resolves with its first line, which tells where it listens, and its later output. */
export async function listening([name = '', ...words]: readonly string[]): Promise<{
  child: ChildProcess;
  where: string;
  rest: Promise<string>;
}> {
  const child = spawn(name, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const [where] = await once(lines, 'line');
  const rest = once(lines, 'line').then(
    ([line]) => String(line),
    () => '',
  );
  return { child, where: String(where), rest };
}
