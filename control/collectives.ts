/** The collectives. Every other list, type and table of them derives from this page. */

/** Collectives with a call of their own in the engine, in the order of their numbers in plans and calls. */
export const BUFFER_COLLECTIVES = [
  'allReduce',
  'allGather',
  'reduceScatter',
  'broadcast',
  'reduce',
  'allToAll',
  'gather',
  'scatter',
] as const;

/** Numbers in a plan: the index in this list. */
export const COLLECTIVES = [...BUFFER_COLLECTIVES, 'sendRecv', 'barrier'] as const;
export type CollectiveName = (typeof COLLECTIVES)[number];

/** nccl-tests' names of the collectives that `ncclrun perf` and `ncclrun tune` measure. */
export const COLLECTIVE_WORDS = {
  allReduce: 'all_reduce',
  allGather: 'all_gather',
  reduceScatter: 'reduce_scatter',
  broadcast: 'broadcast',
  reduce: 'reduce',
  allToAll: 'alltoall',
  gather: 'gather',
  scatter: 'scatter',
  sendRecv: 'sendrecv',
} as const satisfies Readonly<Record<Exclude<CollectiveName, 'barrier'>, string>>;
export type CollectiveWord = (typeof COLLECTIVE_WORDS)[keyof typeof COLLECTIVE_WORDS];

/** Arguments of each collective's call beside buffers, count and type. */
interface CollectiveArguments {
  readonly operator: boolean;
  readonly root: boolean;
  /** True if the larger buffer has a part for each rank. */
  readonly perRank: boolean;
}

export const NO_ARGUMENTS: CollectiveArguments = { operator: false, root: false, perRank: false };

export const COLLECTIVE_ARGUMENTS: Readonly<Record<CollectiveName, CollectiveArguments>> = {
  allReduce: { operator: true, root: false, perRank: false },
  allGather: { operator: false, root: false, perRank: true },
  reduceScatter: { operator: true, root: false, perRank: true },
  broadcast: { operator: false, root: true, perRank: false },
  reduce: { operator: true, root: true, perRank: false },
  allToAll: { operator: false, root: false, perRank: true },
  gather: { operator: false, root: true, perRank: true },
  scatter: { operator: false, root: true, perRank: true },
  sendRecv: NO_ARGUMENTS,
  barrier: NO_ARGUMENTS,
};
