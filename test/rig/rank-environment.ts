/** The environment that each rank of a job found. */
import { Command, type CommandOptions } from './command.ts';

export type RankEnvironment = Readonly<Record<string, string>>;

/** Every variable that ncclrun promises to every rank. */
export const promised = [
  'RANK WORLD_SIZE LOCAL_RANK LOCAL_WORLD_SIZE GROUP_RANK GROUP_WORLD_SIZE MASTER_ADDR MASTER_PORT',
  'TORCHELASTIC_RESTART_COUNT TORCHELASTIC_MAX_RESTARTS TORCHELASTIC_RUN_ID TORCHELASTIC_ERROR_FILE',
  'OMPI_COMM_WORLD_SIZE OMPI_COMM_WORLD_RANK OMPI_COMM_WORLD_LOCAL_SIZE OMPI_COMM_WORLD_LOCAL_RANK',
  'OMPI_COMM_WORLD_NODE_RANK NCCLRUN_JOB_ID NCCLRUN_RANK NCCLRUN_SIZE NCCLRUN_LOCAL_RANK NCCLRUN_PROGRAM',
  'NCCLRUN_AGENT NCCLRUN_UNIQUE_ID NCCL_RAS_ADDR',
].flatMap((line) => line.split(' '));

/** A program that prints its environment, each line after the rank. */
export const printer = ['sh', '-c', 'env | sed "s/^/$RANK /"'];

/** `argv`: ncclrun's options, with programs before a last `:` if there are several. By rank. */
export async function environments(
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<readonly RankEnvironment[]> {
  const { stdout, stderr, status } = await Command.run(['--tag-output=none', ...argv, ...printer], options);
  if (status !== 0) throw new Error(`status ${status}: ${stderr}`);
  const ranks: Record<string, string>[] = [];
  for (const line of stdout.split('\n')) {
    const [, rank, name, value] = /^([0-9]+) (\w+)=(.*)$/u.exec(line) ?? [];
    if (rank !== undefined && name !== undefined) (ranks[Number(rank)] ??= {})[name] = value ?? '';
  }
  return ranks;
}
