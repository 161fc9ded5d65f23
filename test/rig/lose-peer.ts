/** The job of test/rig/programs/lose-peer.c: its last rank dies in a given state, the others go on without it. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { repository } from './cluster.ts';
import type { Cluster } from './cluster.ts';
import { Command } from './command.ts';

/** Where the last rank can be when it dies. */
export const dyingStates = ['init', 'queued', 'ring', 'barrier', 'nodebarrier', 'finalize', 'split'] as const;

/** `where`: options that place three ranks; the last one's host is `host`. */
export async function losePeer(
  program: string,
  state: string,
  where: readonly string[],
  host: string,
  cluster: Cluster | null,
): Promise<void> {
  const directory = await mkdtemp(join(repository, 'build/test-lose-peer-'));
  try {
    const options = ['--grace', '20', ...where, program, state, directory];
    const { status, stdout, stderr } = await Command.run(options, cluster === null ? {} : { cluster });
    const remote = new RegExp(
      `\\] 6 after \\d+ ms: (?:.*rank 2 \\(${host}\\b.*\\) was killed by SIGKILL|.*lost the connection with rank 2 on host ${host}\\b.*)`,
      'g',
    );
    expect(stdout.match(remote), stdout + stderr).toHaveLength(2); // ncclRemoteError at both of the others
    expect(stdout.match(/again with 2$/gm), stdout + stderr).toHaveLength(2);
    expect(status).toBe(137);
  } finally {
    await rm(directory, { recursive: true });
  }
}
