/** `ncclrun perf net`: latency and bandwidth between the NICs of every two hosts, measured by one rank on each. */
import type { JobRequest } from '../../model/types.ts';
import { usageError } from '../../model/usage-error.ts';
import { parseBytes } from '../../model/values.ts';
import { NetReporter } from '../../report/net.ts';
import { reportUnwritten } from '../../report/unwritten.ts';
import { jobRequest } from '../job-request.ts';
import { measuringReporters, runReported } from '../launch.ts';
import type { JobOptionName, MeasureOptionName } from '../options.ts';
import { preflightOf } from './preflight-of.ts';
import type { Settings } from '../settings.ts';

type Names = JobOptionName | MeasureOptionName;

const MAX_SIZES = 16;
const MAX_BYTES = 2 ** 30;
/** Options that decide how many ranks there are: here the hosts do. */
const COUNTS = ['np', 'npernode'] as const;

/** What `ncclrun-perf` is asked to do. Throws a FailureError (usage). */
export function netRequest(settings: Settings<Names>, program: string): JobRequest {
  for (const name of COUNTS) {
    const given = settings.setting(name);
    if (given?.origin === 'flag')
      throw usageError(`${given.source} with perf net, which starts one rank on each host`, 'leave it out');
  }
  const sizes = netSizes(settings).map((text) => sizeOf(text));
  const hosts = settings.text('simulate-hosts');
  const counted =
    hosts === null ? settings.with('npernode', '1').without('np') : settings.without('npernode').with('np', hosts);
  return jobRequest(counted, [program, 'net', sizes.join(','), settings.text('nics')]);
}

/** As the user wrote them. */
function netSizes(settings: Settings<Names>): readonly string[] {
  const sizes = settings.list('net-sizes').flatMap((text) => text.split(','));
  if (sizes.length <= MAX_SIZES) return sizes;
  throw usageError(`--sizes has ${sizes.length} sizes`, `give ${MAX_SIZES} at most`);
}

function sizeOf(text: string): number {
  const bytes = parseBytes(text);
  if (bytes !== null && bytes > 0 && bytes <= MAX_BYTES) return bytes;
  throw usageError(`--sizes has "${text}"`, 'sizes from 1 to 1G are wanted, such as 64K,1M');
}

/** Returns the exit status: the job's, or 1 where a pair failed. */
export async function perfNet(
  settings: Settings<Names>,
  request: JobRequest,
  notices: readonly string[],
): Promise<number> {
  const { json, streams, others, files } = await measuringReporters(settings, request, notices);
  const reporter = new NetReporter(others, streams.stdout, json, netSizes(settings));
  const result = await runReported(request, reporter, { before: await preflightOf(settings, request) });
  return reportUnwritten(files, streams, reporter.verdict(result).exitCode);
}
