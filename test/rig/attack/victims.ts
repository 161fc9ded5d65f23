/** Ranks whose agents' sockets are attacked. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { expect } from 'vitest';
import { Command } from '../command.ts';
import { compileWithEngine } from '../compile.ts';
import { killHard } from '../faults.ts';
import { Steering } from '../steering.ts';
import { until } from '../until.ts';

export interface Victim {
  /** Of the socket; an abstract one begins with a null byte. */
  readonly path: string;
  readonly jobId: string;
  /** The ranks go on as if nothing had happened. */
  readonly unharmed: () => Promise<void>;
  /** They did to their end. */
  readonly end: () => Promise<void>;
}

/** Two ranks of a job, at the socket of their agent. */
export async function ranksOfJob(): Promise<Victim> {
  const steering = await Steering.open();
  const command = Command.start(['-n', '2', ...steering.options, steering.program]);
  const ranks = await steering.ranks(2);
  await Promise.all(ranks.map((rank) => rank.init()));
  const unharmed = async (): Promise<void> => {
    const sums = await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)));
    expect(sums).toEqual(ranks.map(() => [2, 1]));
  };
  return {
    path: (await ranks[0]?.environment('NCCLRUN_AGENT')) ?? '',
    jobId: (await ranks[0]?.environment('NCCLRUN_JOB_ID')) ?? '',
    unharmed,
    async end() {
      await unharmed();
      for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => undefined);
      expect(await command.outcome).toMatchObject({ status: 0, stderr: '' });
      await steering[Symbol.asyncDispose]();
    },
  };
}

/** Two processes that a shell has started, at the socket of their private agent. */
export async function ranksOfShell(directory: string): Promise<Victim> {
  const program = await compileWithEngine('test/rig/programs/plain.c', directory);
  const ids = await mkdtemp(join(directory, 'ids-'));
  const script = 'for r in 0 1; do RANK=$r WORLD_SIZE=2 "$0" hold "$1" & done; wait';
  const command = Command.start(['-c', script, program, ids], { program: 'sh' });
  const ready = (): string[] => readdirSync(ids).filter((name) => name.startsWith('ready-'));
  await until('both ranks have joined', () => ready().length === 2);
  const agents = (): number[] =>
    command
      .survivors()
      .filter(({ argv }) => argv.at(-1) === 'private')
      .map(({ pid }) => pid);
  const [agent = 0] = agents();
  const unharmed = async (): Promise<void> => {
    expect(agents()).toEqual([agent]);
  };
  return {
    path: `\0${abstractName(agent)}`,
    jobId: '',
    unharmed,
    async end() {
      await unharmed();
      const last =
        ready()
          .find((name) => name.endsWith('-1'))
          ?.split('-')[1] ?? '';
      killHard(Number(last));
      expect((await command.outcome).stdout).toContain(`pid ${last}) ended without leaving the communicator`);
      killHard(agent); // else it waits for the end of who attacked it, which has said hello
    },
  };
}

/** Of the socket that a private agent listens at. */
function abstractName(agent: number): string {
  const inode = /\d+/.exec(readlinkSync(`/proc/${agent}/fd/3`))?.[0] ?? '';
  const rows = readFileSync('/proc/net/unix', 'utf8').split('\n');
  const fields = rows.map((row) => row.split(/\s+/)).find((row) => row[6] === inode);
  return fields?.[7]?.slice(1) ?? '';
}
