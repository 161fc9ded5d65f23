/** The id of the keys under which MPI programs meet in their barriers (PMI-1): it stands where NCCL's unique ids stand otherwise. */
import { UNIQUE_ID_BYTES } from './bootstrap.ts';

export const PMI_ID = 'ncclrun PMI'.padEnd(UNIQUE_ID_BYTES, '\0');

/** `round` counts the barriers of the ranks from 0. */
export function describePmiBarrier(round: number): string {
  return `PMI barrier ${round + 1} (MPI_Init or MPI_Finalize)`;
}
