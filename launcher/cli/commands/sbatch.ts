/** `ncclrun sbatch [sbatch's options] -- [options] PROGRAM`: a job that waits for its hosts. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { exitOf } from '../../../control/messages/payload.ts';
import { installationRoot, runToolToEnd } from '../../local/host.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { batchScript } from '../../slurm/script.ts';
import { jobRequest } from '../job-request.ts';
import { runCommandLine, type JobOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import { reportRefusals } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';
import { messageOf } from '../../../control/message-of.ts';

const HOW = 'write: ncclrun sbatch --nodes 4 --gpus-per-node 8 --time 1:00:00 -- PROGRAM';

const SUBMITTED = /^(Submitted batch job )?[0-9]+/m;

/** Returns sbatch's status. Throws a FailureError (usage) for a job that could not be started: nobody should wait for that. */
export async function sbatch(argv: readonly string[]): Promise<number> {
  const end = argv.indexOf('--');
  const before = end === -1 ? argv : argv.slice(0, end);
  if (before.includes('--help') || before.includes('-h')) return (await import('./help.ts')).help('sbatch');
  if (end === -1) throw usageError("sbatch's options and the program have no -- between them", HOW);
  const words = argv.slice(end + 1);
  const name = basename(await programOf(words));
  const script = batchScript({
    options: before.filter((word) => word !== '--print'),
    command: join(installationRoot, 'bin/ncclrun'),
    words,
    name,
  });
  const { stdout, stderr } = standardStreams();
  if (before.includes('--print')) {
    await stdout.print(script);
    return 0;
  }
  const { status, output } = await submit(script);
  // With --wait the status is the job's.
  await (status === 0 || SUBMITTED.test(output) ? stdout : stderr).print(output);
  return status;
}

/** Returns the program that the job will run. Throws for invalid words before the submission. */
async function programOf(argv: readonly string[]): Promise<string> {
  const { settings, files, words, further } = readCommandLine<JobOptionName>(argv, runCommandLine, process.env);
  await reportRefusals(files);
  const [program] = words;
  if (program === undefined) throw usageError('no program to run', HOW);
  jobRequest(settings, words, further);
  return program;
}

async function submit(script: string): Promise<{ status: number; output: string }> {
  const directory = await mkdtemp(join(tmpdir(), 'ncclrun-sbatch-'));
  try {
    const path = join(directory, 'job.sh');
    await writeFile(path, script, { mode: 0o600 });
    const { waitStatus, output } = await runToolToEnd(['sbatch', path]);
    return { status: exitOf(waitStatus).exitCode ?? 1, output };
  } catch (error) {
    const reason = messageOf(error);
    throw usageError(
      `sbatch cannot be started: ${reason}`,
      'ncclrun sbatch --print writes the script for another machine',
    );
  } finally {
    await rm(directory, { recursive: true });
  }
}
