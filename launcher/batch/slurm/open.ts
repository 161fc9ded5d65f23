/** A batch on Slurm as it is on the disk. */
import { usageError } from '../../model/usage-error.ts';
import type { BatchDirectory } from '../state/directory.ts';
import { keepingOf } from '../state/file-systems.ts';
import { openDatabase } from '../store/open.ts';
import { Store } from '../store/store.ts';
import { PieceStore } from './store/pieces.ts';

interface SlurmStores {
  /** Closes the database that both have. */
  readonly store: Store;
  readonly pieces: PieceStore;
}

/** Null: another process has it. */
export function openSlurmIfFree(directory: BatchDirectory): SlurmStores | null {
  const database = openDatabase(directory.database, keepingOf(directory.path).kind !== 'shared');
  return database === null ? null : { store: new Store(database), pieces: new PieceStore(database) };
}

/** Throws a FailureError (usage) if another process has the batch. */
export function openSlurm(directory: BatchDirectory): SlurmStores {
  const stores = openSlurmIfFree(directory);
  if (stores !== null) return stores;
  throw usageError(
    `another ncclrun watches batch ${directory.id} already`,
    `ncclrun jobs ${directory.id} says how it fares`,
  );
}
