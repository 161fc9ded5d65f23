/** `ncclrun [options] PROGRAM [arguments]` */
import { commandBehindOptions, refuseMisspelt, refuseOtherWord } from '../refuse-misspelt.ts';
import { allocationRequest } from '../allocation-request.ts';
import { readCommandLine } from '../read-command-line.ts';
import { jobRequest } from '../job-request.ts';
import { runCommandLine, type JobOptionName } from '../options.ts';
import { notesOnWordBehindFlag, programNotes, refuseDetachedValue, refuseNoProgram } from '../program-word.ts';
import { reportBeforeJob } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';
import type { StandingAgents } from '../../remote/standing-agents.ts';
import { launch } from '../launch.ts';
import type { Reporter } from '../../model/types.ts';
import { preflightOf } from './preflight-of.ts';

interface AmongJobs {
  /** They stay for the next job. */
  readonly agents: StandingAgents;
  /** Beside the job's own. */
  readonly reporters: readonly Reporter[];
}

/** Returns the exit status. Throws a FailureError (usage) for a command line that cannot be meant. `among`: as one of several jobs of this process. */
export async function run(argv: readonly string[], among: AmongJobs | null = null): Promise<number> {
  const { asked, settings, files, notes, words, further } = readCommandLine<JobOptionName>(
    argv,
    runCommandLine,
    process.env,
  );
  if (asked === 'help') return (await import('./help.ts')).help('run', words[0] === 'all');
  if (asked === 'version') return (await import('./version.ts')).version();
  const [program = '', ...rest] = words;
  const isFirst = argv[0] === program;
  if (isFirst) refuseOtherWord(program, rest);
  const isProgramMeant = argv.includes('--');
  const hosts = allocationRequest(settings);
  const warnings: string[] = [];
  if (!isProgramMeant) {
    for (const part of [{ words }, ...further]) refuseNoProgram(part.words, hosts.hostList);
    if (further.length === 0) refuseDetachedValue(argv, words, runCommandLine.options, process.env['PATH'] ?? '');
    warnings.push(
      ...commandBehindOptions(program, rest, isFirst),
      ...(further.length > 0 ? [] : notesOnWordBehindFlag(argv, words, process.env['PATH'] ?? '')),
      ...programNotes(settings, words, hosts.manager !== null),
    );
  }
  const notices = await reportBeforeJob(settings, files, [...notes, ...warnings]);
  if (words.length === 0 && settings.flag('explain'))
    return (await import('./hosts.ts')).explainHosts(hosts, settings.flag('json'));
  if (words.length === 0) throw usageError('no program to run', 'write: ncclrun -n 4 PROGRAM; see ncclrun --help');

  const request = jobRequest(settings, words, further);
  refuseMisspelt(program, isFirst, request, process.env['PATH'] ?? '');
  if (settings.flag('dry-run') || settings.flag('explain'))
    return (await import('./dry-run.ts')).printDryRun(settings, request, further);
  const options = {
    json: settings.flag('json'),
    verbose: settings.flag('verbose'),
    quiet: settings.flag('quiet'),
    eventsFile: settings.text('events'),
    reportFile: settings.text('report'),
    notices,
  };
  return launch(request, options, {
    before: await preflightOf(settings, request),
    standingAgents: among?.agents,
    also: among?.reporters,
  });
}
