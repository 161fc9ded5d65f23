/** What a batch file says, checked and with every default filled in. Arrays are not expanded yet. */

export interface BatchSpec {
  /** `[a-z0-9][a-z0-9_-]{0,62}`; the beginning of the batch's id. */
  readonly name: string;
  /** In the order of the file. */
  readonly jobs: readonly JobSpec[];
  /** What a job that failed for good means for the others: start them, start none, or end them too. */
  readonly onFailure: 'continue' | 'finish' | 'stop';
  /** Command that gets the summary as JSON on its standard input; null: none. */
  readonly notify: readonly string[] | null;
}

export interface JobSpec {
  /** Unique in the file; same letters as a batch's. */
  readonly name: string;
  /** Where it stands in the file, for messages. */
  readonly line: number;
  /** Program and arguments; of a text in the file `sh -c TEXT`. May have `${{ array.x }}` in them. */
  readonly command: readonly string[];
  readonly demand: Demand;
  readonly environment: Readonly<Record<string, string>>;
  /** Variables of the scheduler's environment that are passed on when the job starts; their values are not kept. */
  readonly passedEnvironment: readonly string[];
  /** Absolute. */
  readonly workingDirectory: string;
  readonly timeLimitSeconds: number | null;
  /** 0 to 100, the larger first. */
  readonly priority: number;
  readonly array: ArraySpec | null;
  readonly dependencies: readonly Dependency[];
  readonly retry: RetryPolicy;
  /** Pattern of a file for its output: %x %j %a %A %t %n %N %r %%. */
  readonly output: string;
  /** A signal to the ranks ahead of the time limit. */
  readonly signal: { readonly name: NodeJS.Signals; readonly secondsBefore: number } | null;
  readonly held: boolean;
  /** Options of ncclrun as typed. */
  readonly options: readonly string[];
  /** Options of sbatch as typed; only with --via slurm. */
  readonly slurm: readonly string[];
}

/** What a job needs at once. Ranks go on a host's slots, or beside them where it wants no GPU. */
export interface Demand {
  /** At least 1. */
  readonly ranks: number;
  /** On exactly so many hosts; null: on any number. */
  readonly nodes: number | null;
  /** Exactly so many ranks on each of its hosts; null: any number. */
  readonly ranksPerNode: number | null;
  /** False: its ranks take processors and no slots. */
  readonly takesSlots: boolean;
  readonly cpusPerRank: number;
  /** On each host; 0: not said. */
  readonly memoryBytes: number;
  /** No other job runs on its hosts. */
  readonly exclusive: boolean;
  /** Names that are meant, expanded; null: any. */
  readonly hosts: readonly string[] | null;
  readonly exclude: readonly string[];
  /** Model of the GPUs that it wants, as the file has it: `H100`. */
  readonly gpuModel?: string;
  /** The file says that each rank has a GPU, which Slurm must be asked for. */
  readonly asksGpus?: true;
}

export interface Dependency {
  /** Name of the job of the same file. */
  readonly job: string;
  /** How it must have ended: well, in any way, badly; or only that it has started. */
  readonly condition: 'ok' | 'any' | 'notok' | 'start';
  /** Task by task of two arrays of the same length, as Slurm's aftercorr. */
  readonly each: boolean;
}

export interface ArraySpec {
  /** In the order of their numbers. */
  readonly tasks: readonly ArrayTask[];
  /** How many may run at once; null: any number. */
  readonly maxParallel: number | null;
  /** So many failed ones end the rest; null: none does. */
  readonly maxFails: number | null;
}

export interface ArrayTask {
  readonly index: number;
  /** By the array's words; empty for a range of indexes. */
  readonly values: Readonly<Record<string, string>>;
}

export interface RetryPolicy {
  /** How often it may run again after an error of its own. */
  readonly errors: number;
  /** How often after the loss of a host or of its launcher. */
  readonly interruptions: number;
  /** Exit statuses after which it does not. */
  readonly unlessExit: readonly number[];
  /** Before the first retry; doubles up to 10 minutes. */
  readonly delaySeconds: number;
  /** Whether a job that ran out of memory runs again. */
  readonly onOutOfMemory: boolean;
}
