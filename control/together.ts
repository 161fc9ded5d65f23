/** What doctor asks all hosts of a list to find out at the same time, each in a process of its own: who reaches whom, and whether they share a directory. */
import * as v from 'valibot';

const word = v.pipe(v.string(), v.maxLength(1000));

/** Variable of such a process with the order, as JSON. */
export const TOGETHER_VARIABLE = 'NCCLRUN_DOCTOR_ORDER';

export const togetherOrder = v.object({
  /** Of this run alone: other programs, and other runs, do not know it. */
  sign: v.pipe(v.string(), v.regex(/^[0-9a-f]{16}$/u)),
  port: v.pipe(v.number(), v.integer()),
  /** The first one writes the file that the others look for. `machine` is that of machineOf. */
  hosts: v.array(v.object({ name: word, machine: word, addresses: v.array(word) })),
});
export type TogetherOrder = v.InferOutput<typeof togetherOrder>;

export const togetherAnswer = v.object({
  /** unknown: the first host was not reached or wrote nothing, so nobody knows whether the file was there. */
  file: v.picklist(['written', 'unwritable', 'seen', 'absent', 'unknown']),
  /** False: the port was in use. */
  listened: v.boolean(),
  unreached: v.array(v.object({ host: word, address: word, error: word })),
});
export type TogetherAnswer = v.InferOutput<typeof togetherAnswer>;

/** Name of the file in the working directory. */
export function fileOf({ sign }: Pick<TogetherOrder, 'sign'>): string {
  return `.ncclrun-doctor-${sign}`;
}

/** Equal for two processes of one machine. */
export function machineOf({ bootId, machineName }: { readonly bootId: string; readonly machineName: string }): string {
  return `${bootId} ${machineName}`;
}
