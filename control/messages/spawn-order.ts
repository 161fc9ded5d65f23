/** SpawnOrder to bytes, as guardian.ts lays it out. */
import { ByteWriter } from './bytes.ts';
import { SPAWN_INTERACTIVE, SPAWN_MERGE_STDERR, SPAWN_PMI, SPAWN_STDIN_PIPE } from './guardian.ts';
import type { RankSpawn, SpawnOrder } from './guardian.ts';

/** `shared` is the environment of all ranks; a rank's own entries come after it and win. */
export function encodeSpawnOrder(order: SpawnOrder, shared: Readonly<Record<string, string>>): Uint8Array {
  const sharedEntries = Object.entries(shared);
  const sharedBytes = new ByteWriter(4096);
  for (const [name, value] of sharedEntries) sharedBytes.systemText(`${name}=${value}`);
  const encodedShared = sharedBytes.finish();

  const writer = new ByteWriter(1024 + order.ranks.length * (encodedShared.length + 512));
  writer.u32(order.leaseMs).u64(order.outputCredit).string(order.runtimeDirectory).u32(order.ranks.length);
  for (const rank of order.ranks) writeRank(writer, rank, sharedEntries.length, encodedShared);
  return writer.finish();
}

function writeRank(writer: ByteWriter, rank: RankSpawn, sharedCount: number, shared: Uint8Array): void {
  const own = Object.entries(rank.environment);
  writer
    .u32(rank.rank)
    .u32(
      (rank.stdinPipe ? SPAWN_STDIN_PIPE : 0) |
        (rank.interactive ? SPAWN_INTERACTIVE : 0) |
        (rank.mergeStderr ? SPAWN_MERGE_STDERR : 0) |
        (rank.pmi ? SPAWN_PMI : 0),
    )
    .systemText(rank.workingDirectory);
  writer.u32(rank.argv.length);
  for (const argument of rank.argv) writer.systemText(argument);
  writer.u32(sharedCount + own.length).bytes(shared);
  for (const [name, value] of own) writer.systemText(`${name}=${value}`);
  writer.u32(rank.cpus.length);
  for (const cpu of rank.cpus) writer.u32(cpu);
}
