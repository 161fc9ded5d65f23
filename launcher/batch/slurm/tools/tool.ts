/** Slurm's commands: run without a shell, with a limit of time, and read as they answer in the C locale. */
import { execa } from 'execa';
import { usageError } from '../../../model/usage-error.ts';

export interface Answer {
  readonly ok: boolean;
  readonly stdout: string;
  /** What went wrong, in a sentence of Slurm's or of ours; empty where nothing did. */
  readonly sentence: string;
  /** Slurm's daemon did not answer, or nobody knows whether it did. */
  readonly unclear: boolean;
}

/** Rejects with a FailureError (usage) where the command is not installed. */
export type Tool = (name: string, words: readonly string[], input?: string) => Promise<Answer>;

/** Slurm's own commands wait for their daemon for about a minute. */
const LIMIT_MS = 90_000;
const MAX_BYTES = 256 * 1024 * 1024;

/** Slurm's sentences for a daemon that is not there, is busy, or starts again. */
const UNCLEAR =
  /Unable to contact slurm controller|Socket timed out|Zero Bytes were transmitted|Slurm backup controller in standby mode|Communication connection failure|Communication shutdown failure|Connection refused|Transport endpoint|temporarily unable|Slurm controller is not responding|Resource temporarily unavailable|connect failure|Insane message length|Header lengths are longer/iu;

export async function runTool(name: string, words: readonly string[], input?: string): Promise<Answer> {
  const result = await execa(name, words, {
    reject: false,
    timeout: LIMIT_MS,
    killSignal: 'SIGKILL',
    maxBuffer: MAX_BYTES,
    stripFinalNewline: false,
    env: toolEnvironment(),
    ...(input === undefined ? { stdin: 'ignore' as const } : { input }),
  });
  if (result.code === 'ENOENT' || result.code === 'EACCES')
    throw usageError(
      `${name} cannot be started (${result.code}): --via slurm needs Slurm's commands`,
      'run ncclrun on a login node of the cluster; on hosts without Slurm leave --via slurm out, and give --hostfile',
    );
  const { stdout, stderr, timedOut, signal, failed } = result;
  return {
    ok: !failed,
    stdout,
    sentence: failed ? sentenceOf(name, stderr, timedOut, signal) : '',
    unclear: failed && (timedOut || signal !== undefined || UNCLEAR.test(stderr)),
  };
}

/** Variables that would change what a command does or how it answers. */
function toolEnvironment(): Record<string, string | undefined> {
  return {
    LC_ALL: 'C',
    SLURM_TIME_FORMAT: 'standard',
    SBATCH_WAIT: undefined,
    SBATCH_ARRAY_INX: undefined,
    SQUEUE_FORMAT: undefined,
    SQUEUE_FORMAT2: undefined,
    SQUEUE_SORT: undefined,
    SQUEUE_PARTITION: undefined,
    SQUEUE_STATES: undefined,
    SQUEUE_NAMES: undefined,
    SQUEUE_ACCOUNT: undefined,
    SQUEUE_QOS: undefined,
    SQUEUE_LICENSES: undefined,
    SACCT_FORMAT: undefined,
  };
}

/** Slurm's lines without their beginnings, `sbatch: error: `. */
function sentenceOf(name: string, stderr: string, timedOut: boolean, signal: string | undefined): string {
  if (timedOut) return `${name} did not answer within ${LIMIT_MS / 1000} s`;
  const lines = stderr
    .split('\n')
    .map((line) => line.replace(/^\w+: (?:error: |fatal: )?/u, '').trim())
    .filter((line) => line !== '');
  if (lines.length > 0) return lines.join('; ');
  return signal === undefined ? `${name} failed and said nothing` : `${name} ended by ${signal}`;
}
