/** What a batch on Slurm keeps beside its database, before it is submitted: that it is one, and how its jobs are named. */
import { join } from 'node:path';
import * as v from 'valibot';
import { randomBytes } from '../../../../control/random-bytes.ts';
import { readIfThere, writeDurably } from '../../attempt/durable-file.ts';
import type { BatchDirectory } from '../../state/directory.ts';

const slurmFacts = v.object({
  schemaVersion: v.literal(1),
  /** In the names of its jobs in Slurm, which no other batch's have. */
  key: v.string(),
  maxArraySize: v.pipe(v.number(), v.safeInteger(), v.minValue(1)),
  /** Path of ncclrun on the hosts. */
  command: v.string(),
});
export type SlurmFacts = v.InferOutput<typeof slurmFacts>;

const KEY_BYTES = 4;

export function newKey(): string {
  return randomBytes(KEY_BYTES).toString('hex');
}

export function writeFacts(directory: BatchDirectory, facts: SlurmFacts): void {
  writeDurably(pathOf(directory), JSON.stringify(facts));
}

/** Null: Slurm does not have the batch. */
export function readFacts(directory: BatchDirectory): SlurmFacts | null {
  const content = readIfThere(pathOf(directory));
  return content === null ? null : v.parse(slurmFacts, JSON.parse(content));
}

function pathOf(directory: BatchDirectory): string {
  return join(directory.path, 'slurm.json');
}
