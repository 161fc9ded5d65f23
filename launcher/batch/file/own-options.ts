/** Options that a job cannot give ncclrun, since the batch gives them. */
import { bareFlag } from '../../model/flags.ts';

interface Decided {
  /** With and without dashes between words: all are alike. */
  readonly flags: readonly string[];
  readonly remedy: string;
}

export const decidedByBatch: readonly Decided[] = [
  { flags: ['-H', '--host', '-hosts', '-w'], remedy: 'write hosts: node[1-4]' },
  { flags: ['--hostfile', '--machinefile', '-f'], remedy: 'ncclrun batch --hostfile FILE gives it to all jobs' },
  { flags: ['--include'], remedy: 'write hosts: node[1-4]' },
  { flags: ['--exclude'], remedy: 'write exclude: node5' },
  { flags: ['-n', '-np', '--np', '--ntasks'], remedy: 'write ntasks: 16' },
  { flags: ['-N', '--npernode', '-ppn', '--nproc-per-node', '--ntasks-per-node'], remedy: 'write ntasks_per_node: 8' },
  { flags: ['--oversubscribe'], remedy: 'write gpus_per_node: 0, and cpus_per_task' },
  { flags: ['-x', '--export'], remedy: 'write env: { NAME: value }, or env_from: [NAME]' },
  { flags: ['--wdir', '-wd', '--chdir'], remedy: 'write working_dir: DIRECTORY' },
  { flags: ['--timeout'], remedy: 'write time_limit: 12h' },
  { flags: ['--output', '--output-filename'], remedy: 'write output: FILE' },
  { flags: ['--report'], remedy: 'leave it out: the batch keeps the report of every job' },
  { flags: ['--stdin'], remedy: 'leave it out: a job reads no standard input' },
  { flags: ['--live'], remedy: 'leave it out: jobs of a batch write into files' },
  { flags: ['--resource-manager'], remedy: 'ncclrun batch --resource-manager NAME decides it for all jobs' },
  { flags: ['--simulate-hosts'], remedy: 'leave it out: the batch chooses the hosts' },
  { flags: ['--explain', '--dry-run'], remedy: 'ncclrun batch --check FILE starts nothing' },
  { flags: ['--version', '-V', '--help', '-h'], remedy: 'leave it out: it starts no job' },
];

const remedies = new Map(decidedByBatch.flatMap(({ flags, remedy }) => flags.map((flag) => [bareFlag(flag), remedy])));

/** What to write in place of an option; null for one that a job may give. */
export function remedyForOption(word: string): string | null {
  if (!/^--?[A-Za-z]/u.test(word)) return null;
  const [flag = ''] = word.split('=', 1);
  const whole = remedies.get(bareFlag(flag));
  if (whole !== undefined) return whole;
  // As in -n4 and -Hnode1.
  const short = /^-([nNHxfw])[^a-z]/u.exec(word)?.[1];
  return short === undefined ? null : (remedies.get(short) ?? null);
}
