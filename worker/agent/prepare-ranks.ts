/** From the launcher's order to the guardian's: the command line, directory and environment of each rank of this host. */
import { existsSync } from 'node:fs';
import type { RankSpawn } from '../../control/messages/guardian.ts';
import type { OrderedProgram, OrderedRank } from '../../control/messages/link.ts';
import { encodeSpawnOrder } from '../../control/messages/spawn-order.ts';
import { systemPath } from '../../control/system-text.ts';
import { homeDirectory } from '../../control/home-directory.ts';
import { type VisibleGpu, visibleGpus } from '../topology/gpus.ts';
import {
  gpuEnvironment,
  type HostEnvironment,
  jobEnvironment,
  programEnvironment,
  rankEnvironment,
  usualEnvironment,
} from './environment.ts';
import { preloadEnvironment } from './preload.ts';
import { fromOwnInstallation, interpretedProgram } from './program.ts';

interface RankFacts extends HostEnvironment {
  readonly runtimeDirectory: string;
  /** The agent runs in the launcher. */
  readonly local: boolean;
}

interface PreparedRanks {
  /** Payload of the spawn frame. */
  readonly spawnOrder: Uint8Array;
  /** Ranks whose program cannot be read here. */
  readonly unreadable: readonly number[];
  /** A sentence for the user; null: nothing is other than ordered. */
  readonly notice: string | null;
}

export function prepareRanks(facts: RankFacts): PreparedRanks {
  const { order, placement, runtimeDirectory } = facts;
  const ofJob = jobEnvironment(facts);
  const directories = placement.programs.map((program) => workingDirectory(program, facts.local));
  const programs = placement.programs.map((program, index) => ({
    ...program,
    argv: fromOwnInstallation(program.argv, order.installation),
    workingDirectory: directories[index]?.path ?? program.workingDirectory,
    environment: {
      ...programEnvironment(program, ofJob),
      ...(order.preload ? preloadEnvironment(program.environment, process.env) : {}),
    },
  }));
  const gpus = visibleGpus();
  const ranks: RankSpawn[] = [];
  const unreadable: number[] = [];
  const before = facts.localRanks?.before ?? 0;
  for (const [index, ordered] of placement.ranks.entries()) {
    const program = programs[ordered.program];
    if (program === undefined) continue;
    const rank = prepareRank(ordered, before + index, program, gpus, facts);
    if (rank === null) unreadable.push(ordered.rank);
    else ranks.push(rank);
  }
  const { leaseMs, outputCredit } = order;
  const shared = { ...usualEnvironment(facts), ...ofJob };
  const spawnOrder = encodeSpawnOrder({ leaseMs, outputCredit, runtimeDirectory, ranks }, shared);
  return { spawnOrder, unreadable, notice: directories.find(({ notice }) => notice !== null)?.notice ?? null };
}

/** Null if its program cannot be read here. */
function prepareRank(
  ordered: OrderedRank,
  localRank: number,
  program: OrderedProgram,
  gpus: readonly VisibleGpu[],
  { local, runtimeDirectory, placement }: RankFacts,
): RankSpawn | null {
  const { rank, stdinPipe, interactive, mergeStderr, cpus } = ordered;
  const { workingDirectory: directory } = program;
  // In the user's own directory, their PWD holds: it may have the symbolic link through which they entered it.
  const stays = local && !program.workingDirectoryGiven;
  const pmi = placement.pmi !== undefined;
  const environment = {
    ...program.environment,
    ...gpuEnvironment(ordered, localRank, gpus, program.environment, process.env['CUDA_VISIBLE_DEVICES']),
    ...rankEnvironment(ordered, localRank, runtimeDirectory, pmi),
    ...(stays ? {} : { PWD: directory }),
  };
  const interpreted = interpretedProgram(program.argv, directory);
  if (interpreted !== null && !interpreted.readable) return null;
  const argv = interpreted?.argv ?? program.argv;
  return { rank, stdinPipe, interactive, mergeStderr, pmi, workingDirectory: directory, argv, environment, cpus };
}

/** Returns the home directory if the launcher's own directory does not exist on this host. */
function workingDirectory(
  { workingDirectory: wanted, workingDirectoryGiven: given }: OrderedProgram,
  local: boolean,
): { readonly path: string; readonly notice: string | null } {
  if (given || local || existsSync(systemPath(wanted))) return { path: wanted, notice: null };
  const path = homeDirectory() ?? '/';
  return { path, notice: `there is no ${wanted}; the ranks run in ${path} (--wdir names another directory)` };
}
