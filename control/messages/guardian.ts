/**
 * Messages of an agent to its guardian. The guardian (native/guardian) is the only process that starts ranks.
 *
 * SpawnOrder, payload of FrameKind.spawn; strings are u32 length + bytes without a NUL:
 *
 *   u32 leaseMs            silence of the agent longer than this ends the ranks; 0 = no lease yet
 *   u64 outputCredit       bytes of output the guardian may send before it needs FrameKind.outputCredit
 *   str runtimeDirectory   removed with its content when the guardian ends; empty = none
 *   u32 rankCount, then for each rank:
 *     u32 rank
 *     u32 flags            bit 0: stdin is a pipe fed by FrameKind.stdin, else /dev/null;
 *                          bit 1: interactive, the beginning of a line is sent (OUTPUT_PARTIAL) if its end is 100 ms late;
 *                          bit 2: stderr is stdout's pipe, as a shell's 2>&1 makes it;
 *                          bit 3: descriptor PMI_DESCRIPTOR is a socket that FrameKind.pmi serves
 *     str workingDirectory
 *     u32 argc, argc × str program and arguments; program is looked up in the PATH of the rank's environment
 *     u32 envc, envc × str "NAME=value", laid over the guardian's own environment; of two
 *                          with one name the later counts
 *     u32 cpuc, cpuc × u32 CPUs to run on; 0 = wherever the guardian may run
 */
export const SPAWN_STDIN_PIPE = 1;
export const SPAWN_INTERACTIVE = 2;
export const SPAWN_MERGE_STDERR = 4;
export const SPAWN_PMI = 8;

/** Descriptor of a rank's PMI connection: above those that shell scripts number themselves, and below those that shells take for themselves. */
export const PMI_DESCRIPTOR = 29;

/** Step at which a spawn failed. */
export const SpawnStep = { fork: 1, session: 2, binding: 3, directory: 4, streams: 5, exec: 6 } as const;
export type SpawnStep = (typeof SpawnStep)[keyof typeof SpawnStep];

export interface RankSpawn {
  readonly rank: number;
  readonly stdinPipe: boolean;
  /** Somebody may sit before this rank: prompts and progress bars appear without waiting for the end of their line. */
  readonly interactive: boolean;
  /** What it writes to stderr comes as stdout, in the order in which it was written. */
  readonly mergeStderr: boolean;
  /** It has a PMI connection. */
  readonly pmi: boolean;
  readonly workingDirectory: string;
  /** Program first; looked up in the PATH of `environment` laid over the guardian's. */
  readonly argv: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
  readonly cpus: readonly number[];
}

export interface SpawnOrder {
  readonly leaseMs: number;
  readonly outputCredit: number;
  readonly runtimeDirectory: string;
  readonly ranks: readonly RankSpawn[];
}
