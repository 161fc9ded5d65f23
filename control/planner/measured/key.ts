/** What a table of measured times holds for: equal keys, equal times. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { DeviceName } from '../../plan/types.ts';

/** Of the tables, whatever version of ncclrun writes them: tables of another one are not found. */
export const FORMAT_VERSION = 1;

export interface TableKey {
  readonly device: DeviceName;
  readonly ranks: number;
  /** A hash of all that the model knows of the paths between the ranks; null: nothing is known. */
  readonly topology: string | null;
  /** On processors: their name, and how many cores ranks may run on. */
  readonly processor: string | null;
  readonly cores: number | null;
  /** On GPUs: their name and the driver's version; null: nobody says. */
  readonly gpu: string | null;
  readonly computeCapability: number | null;
  readonly driver: string | null;
}

export function hashOf(facts: unknown): string {
  return createHash('sha256').update(JSON.stringify(facts)).digest('hex').slice(0, 16);
}

export function tablesBelow(cacheDirectory: string): string {
  return join(cacheDirectory, 'tuning');
}

export function tablePath(directory: string, key: TableKey): string {
  return join(directory, `${key.device}-${key.ranks}-${hashOf([FORMAT_VERSION, inOrder(key)])}.json`);
}

/** Also of a key whose fields came in another order. */
export function inOrder(key: TableKey): TableKey {
  const { device, ranks, topology, processor, cores, gpu, computeCapability, driver } = key;
  return { device, ranks, topology, processor, cores, gpu, computeCapability, driver };
}
