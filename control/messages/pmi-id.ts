/** Ids of the keys under which MPI programs meet in their barriers (PMI-1): they stand where NCCL's unique ids stand otherwise. */
import { UNIQUE_ID_BYTES } from './bootstrap.ts';

const PREFIX = 'ncclrun PMI, program ';

/** `program` counts the MPI programs that each rank has run one after the other, from 0. */
export function pmiId(program: number): string {
  return `${PREFIX}${program}`.padEnd(UNIQUE_ID_BYTES, '\0');
}

export function isPmiId(id: string): boolean {
  return id.startsWith(PREFIX);
}

/** `round` counts the barriers of one program from 0. */
export function describePmiBarrier(round: number): string {
  return `PMI barrier ${round + 1} (MPI_Init or MPI_Finalize)`;
}
