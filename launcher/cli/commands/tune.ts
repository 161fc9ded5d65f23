/** `ncclrun tune [options]`: measures every variant between ranks of one host or several, as an ordinary job, and stores the times for the planner. */
import { basename, join } from 'node:path';
import { cacheDirectory } from '../../../control/cache-directory.ts';
import { tablesBelow } from '../../../control/planner/measured/key.ts';
import { storeTable, writeTable } from '../../../control/planner/measured/store.ts';
import { FailureError } from '../../model/failure-error.ts';
import type { JobRequest, Reporter } from '../../model/types.ts';
import { installedVersion, perfPath } from '../../local/host.ts';
import { composeReporters } from '../../report/compose.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { reportUnwritten } from '../../report/unwritten.ts';
import { TuneReporter, type Stored, type TuneReporterOptions } from '../../tune/reporter.ts';
import { candidatesText } from '../../tune/candidates.ts';
import { tableOfMeasured } from '../../tune/table.ts';
import { checkedWords } from '../checked-words.ts';
import { collectiveWords } from '../collectives.ts';
import { commandTable } from '../command-table.ts';
import { jobRequest } from '../job-request.ts';
import { measuringReporters, runReported } from '../launch.ts';
import { jsonAsked } from '../json-asked.ts';
import { tuneCommandLine, type JobOptionName, type TuneOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import { resultWithoutJob } from '../refused.ts';
import type { Settings } from '../settings.ts';
import { reportBeforeJob } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';
import { messageOf } from '../../../control/message-of.ts';

/** Returns the exit status: the job's, or that of a table that cannot be written. Throws a FailureError (usage). */
export async function tune(argv: readonly string[]): Promise<number> {
  try {
    return await measure(argv);
  } catch (error) {
    if (error instanceof FailureError && jsonAsked(argv, tuneCommandLine, process.env))
      await reporterFor(composeReporters([]), true, { output: null, maxSpread: Infinity, maxLoad: Infinity }).result(
        resultWithoutJob(error.failure),
      );
    throw error;
  }
}

async function measure(argv: readonly string[]): Promise<number> {
  type Names = JobOptionName | TuneOptionName;
  const { asked, settings, files: read, notes, words } = readCommandLine<Names>(argv, tuneCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('tune');
  if (asked === 'version') return (await import('./version.ts')).version();
  const notices = await reportBeforeJob(settings, read, notes);
  checkedWords(words, commandTable.tune);

  const request = measuring(jobRequest(settings, [perfPath, 'variants', ...variantsArguments(settings)]));
  if (settings.flag('dry-run') || settings.flag('explain')) return dryRun(settings, request);

  const { json, streams, others, files } = await measuringReporters(settings, request, notices);
  const reporter = reporterFor(others, json, {
    output: settings.text('table'),
    maxSpread: (settings.integer('max-spread') ?? 0) / 100,
    maxLoad: (settings.integer('max-load') ?? 0) / 100,
  });
  const result = await runReported(request, reporter);
  return reportUnwritten(files, streams, reporter.verdict(result).exitCode);
}

interface Storing {
  /** --output. */
  readonly output: string | null;
  /** --max-spread, as a share. */
  readonly maxSpread: number;
  /** --max-load, as a share. */
  readonly maxLoad: number;
}

function reporterFor(inner: Reporter, json: boolean, { output, ...limits }: Storing): TuneReporter {
  return new TuneReporter({ inner, stdout: standardStreams().stdout, json, ...limits, store: storeIn(output) });
}

/** Who would run where and, of this machine, how many variants would be measured. */
async function dryRun(settings: Settings<JobOptionName | TuneOptionName>, request: JobRequest): Promise<number> {
  const status = await (await import('./dry-run.ts')).printDryRun(settings, request);
  const { hosts, ranks, aggregators = [] } = (await import('../dry-run.ts')).dryRun(request, []);
  const isHere = (request.simulated ?? null) !== null || (hosts.length === 1 && hosts.every(({ local }) => local));
  if (settings.flag('json') || !isHere || ranks === null || ranks.length < 2) return status;
  const collectives = collectiveWords(settings.list('collective'));
  const measured = {
    ranks: ranks.length,
    hosts: hosts.length,
    hasAggregators: aggregators.length > 0,
    device: settings.text('device'),
  };
  const text = await candidatesText(measured, collectives);
  await standardStreams().stdout.print(text);
  return status;
}

/** Such that the host plans every variant (control/planner/measured/candidates.ts). */
function measuring(request: JobRequest): JobRequest {
  const programs = request.programs.map((program) => ({
    ...program,
    exports: [...program.exports, 'NCCLRUN_TUNE=measure'],
  }));
  return { ...request, programs };
}

function variantsArguments(settings: Settings<TuneOptionName>): string[] {
  const begin = settings.bytes('begin') ?? 0;
  const end = settings.bytes('end') ?? 0;
  if (begin < 1) throw usageError(`-b ${begin}`, 'a variant takes at least one byte');
  if (settings.text('end') !== null && end < begin)
    throw usageError(`-e ${end} is less than -b ${begin}`, 'sizes go from -b up to -e');
  const iterations = settings.text('iters');
  const pairs: readonly (readonly [string, string])[] = [
    ['--collectives', collectiveWords(settings.list('collective')).join(',')],
    ['--begin', `${begin}`],
    ['--end', `${end}`],
    ['--factor', settings.text('factor')],
    ...(iterations === null ? [] : [['--iters', iterations] as const]),
    ['--rounds', settings.text('rounds')],
    ['--device', settings.text('device')],
  ];
  return pairs.flat();
}

/** The host that planned has its tables in a directory of its own, which need not be ours. */
function storeIn(output: string | null): TuneReporterOptions['store'] {
  return (rows, planned, isHere): Stored => {
    const table = tableOfMeasured({ rows, key: planned.key, measuredAt: new Date(), version: installedVersion() });
    const cache = cacheDirectory(process.env);
    if (cache === null && output === null)
      throw usageError('there is no home directory to keep the table in', 'name a file: --output FILE');
    const directory = tablesBelow(cache ?? '');
    const name = basename(planned.file);
    const file = output ?? join(directory, name);
    try {
      if (output === null) storeTable(directory, name, table);
      else writeTable(output, table);
    } catch (error) {
      const reason = messageOf(error);
      throw usageError(
        `the table ${file} cannot be written: ${reason}`,
        'name a file in a directory you may write to: --output FILE',
      );
    }
    const { between } = table.key;
    const on = between === undefined ? 'there' : `on ${between.hosts} such hosts`;
    const jobs = `jobs of ${planned.ranks} ranks ${on} take these variants (NCCLRUN_TUNE=0: they do not)`;
    const isFound = isHere && file === planned.file;
    return {
      file,
      note: isFound
        ? `stored in ${file}: ${jobs}`
        : `stored in ${file}; as ${planned.file} on ${planned.host}, ${jobs}`,
    };
  };
}
