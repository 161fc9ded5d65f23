/** What hosts have, and what a job gets of them. */

export interface HostCapacity {
  readonly name: string;
  /** Numbers of its slots (of its GPUs where it has any), ascending. */
  readonly slots: readonly number[];
  /** Processors; null: not known, and not counted. */
  readonly cpus: number | null;
  /** null: not known, and not counted. */
  readonly memoryBytes: number | null;
}

/** A job's part of one host. */
export interface Share {
  readonly host: string;
  readonly ranks: number;
  /** Numbers of the slots that it has for itself; empty where it takes none. */
  readonly slots: readonly number[];
  readonly cpus: number;
  readonly memoryBytes: number;
  /** Nothing else runs there meanwhile. */
  readonly exclusive: boolean;
}

/** In the order in which its ranks are counted. */
export type Placement = readonly Share[];
