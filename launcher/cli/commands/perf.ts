/** `ncclrun perf COLLECTIVE|net [options]`: the native measuring program as the ranks of an ordinary job. */
import { perfPath } from '../../local/host.ts';
import { reportUnwritten } from '../../report/unwritten.ts';
import { PerfReporter } from '../../report/perf.ts';
import { jobRequest } from '../job-request.ts';
import { measuringReporters, runReported } from '../launch.ts';
import { perfCommandLine, type JobOptionName, type MeasureOptionName } from '../options.ts';
import { checkedWords } from '../checked-words.ts';
import { wordOfProgram } from '../collectives.ts';
import { commandTable, NETWORK_WORD } from '../command-table.ts';
import { readCommandLine } from '../read-command-line.ts';
import { preflightOf } from './preflight-of.ts';
import type { Settings } from '../settings.ts';
import { reportBeforeJob } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';

/** Returns the exit status: the job's, or 1 where elements were wrong. Throws a FailureError (usage). */
export async function perf(argv: readonly string[]): Promise<number> {
  type Names = JobOptionName | MeasureOptionName;
  const { asked, settings, files: read, notes, words } = readCommandLine<Names>(argv, perfCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('perf');
  if (asked === 'version') return (await import('./version.ts')).version();
  const notices = await reportBeforeJob(settings, read, [...notes, ...ncclTestsNotes(settings, argv)]);

  const subject = subjectOf(words);
  const net = subject === NETWORK_WORD ? await import('./perf-net.ts') : null;
  const request =
    net?.netRequest(settings, perfPath) ?? jobRequest(settings, [perfPath, subject, ...measureArguments(settings)]);
  if (settings.flag('dry-run') || settings.flag('explain'))
    return (await import('./dry-run.ts')).printDryRun(settings, request);

  if (net !== null) return net.perfNet(settings, request, notices);

  const { json, streams, others, files } = await measuringReporters(settings, request, notices);
  const reporter = new PerfReporter(others, streams.stdout, json, settings.text('device') !== 'auto');
  const result = await runReported(request, reporter, { before: await preflightOf(settings, request) });
  return reportUnwritten(files, streams, reporter.verdict(result).exitCode);
}

/** Options that only lines for nccl-tests have. */
const OF_NCCL_TESTS = /^-(w|g|t|c|G|m|R|T|a|p|C)$|^--(warmup_iters|ngpus|nthreads|cudagraph|agg_iters|stepfactor)$/u;

/** A line for nccl-tests has another meaning for -n. */
function ncclTestsNotes(settings: Settings<JobOptionName>, argv: readonly string[]): string[] {
  const ranks = settings.setting('np');
  if (ranks?.source !== '-n' || !argv.some((word) => OF_NCCL_TESTS.test(word))) return [];
  return [`-n ${ranks.values.join()} is the number of ranks; what nccl-tests calls -n is --iters here`];
}

/** A collective, or the network. */
function subjectOf(words: readonly string[]): string {
  const [subject] = checkedWords(words.map(wordOfProgram), commandTable.perf);
  if (subject !== undefined) return subject;
  throw usageError('no collective given', `write: ${commandTable.perf.usage}`);
}

function measureArguments(settings: Settings<MeasureOptionName>): string[] {
  const begin = settings.bytes('begin') ?? 0;
  const end = settings.bytes('end') ?? 0;
  if (end < begin) throw usageError(`-e ${end} is less than -b ${begin}`, 'sizes go from -b up to -e');
  const pairs: readonly (readonly [string, string])[] = [
    ['--begin', `${begin}`],
    ['--end', `${end}`],
    ['--factor', settings.text('factor')],
    ['--iters', settings.text('iters') ?? ''],
    ['--warmup', settings.text('warmup')],
    ['--blocking', settings.flag('blocking') ? '1' : '0'],
    ['--check', settings.flag('check') ? '1' : '0'],
    ['--root', settings.text('root')],
    ['--type', settings.text('type')],
    ['--op', settings.text('op')],
    ['--device', settings.text('device')],
  ];
  return pairs.flat();
}
