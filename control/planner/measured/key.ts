/** What a table of measured times holds for: equal keys, equal times. */
import { createHash } from 'node:crypto';
import { join } from 'node:path';
import type { DeviceName } from '../../plan/types.ts';

/** Of the tables, whatever version of ncclrun writes them: tables of another one are not found. */
export const FORMAT_VERSION = 1;

export interface TableKey {
  readonly device: DeviceName;
  readonly ranks: number;
  /** Hash of the model's paths between the ranks; null if the topology is unknown. */
  readonly topology: string | null;
  /** Name of the processors, and number of cores for ranks; null on GPUs. */
  readonly processor: string | null;
  readonly cores: number | null;
  /** Name of the GPUs and the driver's version; null on processors, or if unknown. */
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
