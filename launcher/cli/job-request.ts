/** Merged settings → what the job is asked to be. */
import type { JobRequest, MapBy, ProgramRequest, RankRange } from '../model/types.ts';
import { parsePortRange } from '../../control/port-range.ts';
import { forwardSignals } from './forward-signals.ts';
import { allocationRequest } from './allocation-request.ts';
import { parseMapBy } from './map-by.ts';
import type { JobOptionName } from './options.ts';
import { maxRestarts } from './restart-request.ts';
import { stdinReaders } from './stdin-readers.ts';
import type { Settings } from './settings.ts';
import { outputRequest } from './output-request.ts';
import { parseRankList } from './rank-list.ts';
import { usageError } from '../model/usage-error.ts';

/** One more program after a `:`, with what stands before it. */
export interface FurtherProgram {
  readonly settings: Settings<JobOptionName>;
  readonly words: readonly string[];
}

/**
 * Throws a FailureError (usage) for an -x that names nothing, lists of ranks or signals that are none, and placements that contradict
 * each other.
 */
export function jobRequest(
  settings: Settings<JobOptionName>,
  argv: readonly string[],
  further: readonly FurtherProgram[] = [],
): JobRequest {
  const output = outputRequest(settings.list('output'), settings.text('output-filename'));
  const { mapBy, oversubscribe } = parseMapBy(settings.text('map-by'), settings.setting('map-by')?.source);
  const apart = further.some((program) => ownHosts(program.settings) !== null);
  const programs = [{ settings, words: argv }, ...further].map((program) => programRequest(program, apart));
  for (const program of programs) checkPerHost(program, mapBy);
  return {
    programs,
    ...allocationRequest(settings),
    simulated: simulatedHosts(settings, programs),
    ...(apart && !hostsElsewhere(settings)
      ? { hostList: programs.flatMap(({ hostList }) => hostList ?? []).join(',') }
      : {}),
    timeoutSeconds: settings.seconds('timeout'),
    initTimeoutSeconds: settings.seconds('init-timeout'),
    hangAfterSeconds: settings.seconds('hang-after'),
    stragglerWindowSeconds: settings.seconds('straggler-window'),
    recordsFailures: settings.text('report') !== null,
    recordsAll: settings.text('record') === 'all',
    onHang: oneOf(['report', 'abort', 'restart', 'ignore'], settings.text('on-hang')) ?? 'report',
    maxRestarts: maxRestarts(settings),
    shrinks: settings.text('on-failure') === 'shrink',
    graceSeconds: settings.seconds('grace'),
    tagOutput: tagOutput(settings, output.tag),
    outputRanks: rankList(settings, 'output-ranks'),
    timestampOutput: settings.flag('timestamp-output') || output.timestamp,
    outputFiles: output.files,
    outputShown: output.shown,
    mergeStderr: settings.flag('merge-stderr-to-stdout') || output.merge,
    fold: settings.flag('fold'),
    live: settings.text('live') !== 'never',
    stdin: stdinReaders(settings.text('stdin'), settings.setting('stdin')?.source ?? '--stdin'),
    rsh: settings.text('rsh'),
    radix: settings.integer('radix') ?? 0,
    portRange: parsePortRange(settings.text('port-range') ?? ''),
    stage: settings.text('stage') !== 'never',
    mapBy,
    rankBy: rankBy(settings, mapBy),
    bindTo: oneOf(['none', 'core', 'numa', 'gpu'], settings.text('bind-to')) ?? 'none',
    reportBindings: settings.flag('report-bindings'),
    isolateGpus: settings.flag('isolate-gpus'),
    busyGpus: oneOf(['refuse', 'report', 'ignore'], settings.text('busy-gpus')) ?? 'report',
    spawnTimeoutSeconds: settings.seconds('spawn-timeout'),
    forwardSignals: forwardSignals(
      settings.list('forward-signals'),
      settings.setting('forward-signals')?.source ?? '--forward-signals',
    ),
    oversubscribe: oversubscribe || settings.flag('oversubscribe'),
    planFile: settings.text('plan'),
    engine: oneOf(['none', 'ncclrun'], settings.text('engine')) ?? 'none',
    pmi: oneOf(['none', 'pmi1'], settings.text('pmi')) ?? 'pmi1',
    aggregators: aggregatorRequest(settings),
  };
}

/** --collnet-hosts alone wants one on each; --collnet=0 none, whatever the other says. */
function aggregatorRequest(settings: Settings<JobOptionName>): JobRequest['aggregators'] {
  const hosts = settings.list('collnet-hosts');
  const text = settings.text('collnet');
  const count = settings.integer('collnet');
  if (count === 0 || (text === null && hosts.length === 0)) return null;
  return { count, hostList: hosts.length === 0 ? null : hosts.join(',') };
}

/** Every simulated host has as many ranks as the others, but for the last. */
function simulatedHosts(
  settings: Settings<JobOptionName>,
  programs: readonly ProgramRequest[],
): JobRequest['simulated'] {
  const hosts = settings.integer('simulate-hosts');
  if (hosts === null) return null;
  for (const name of ['host', 'hostfile', 'include', 'exclude'] as const) {
    const setting = settings.setting(name);
    if (setting === null) continue;
    throw usageError(`${setting.source} and --simulate-hosts both say which hosts there are`, 'leave one of them out');
  }
  const ranks = programs.reduce<number | null>(
    (sum, { ranks: own }) => (own === null || sum === null ? null : sum + own),
    0,
  );
  if (ranks === null) {
    throw usageError(
      `--simulate-hosts ${hosts} deals ranks to hosts, and there is no -n that says how many`,
      'add -n RANKS',
    );
  }
  if (ranks >= hosts) return { hosts, slots: Math.ceil(ranks / hosts) };
  throw usageError(`--simulate-hosts ${hosts}, but there are ${ranks} ranks`, 'every simulated host needs one');
}

/** `apart`: some program has hosts of its own, so -H before a program is for that program. */
function programRequest({ settings, words }: FurtherProgram, apart: boolean): ProgramRequest {
  return {
    argv: words,
    ranks: settings.integer('np'),
    ranksPerHost: settings.text('npernode') === 'gpu' ? 'gpu' : settings.integer('npernode'),
    exports: settings.list('export').map((text) => checkedExport(text, settings)),
    workingDirectory: settings.text('wdir'),
    hostList: apart ? ownHosts(settings) : null,
  };
}

/** -H as it stands before the program; a setting from elsewhere is for all. */
function ownHosts(settings: Settings<JobOptionName>): string | null {
  return hostsElsewhere(settings) ? null : (settings.setting('host')?.values.join(',') ?? null);
}

function hostsElsewhere(settings: Settings<JobOptionName>): boolean {
  const setting = settings.setting('host');
  return setting !== null && !setting.source.startsWith('-');
}

function checkPerHost({ ranksPerHost }: ProgramRequest, mapBy: MapBy): void {
  if (ranksPerHost === null || (mapBy.by !== 'ppr' && mapBy.by !== 'seq')) return;
  if (mapBy.by === 'ppr' && mapBy.object === 'node' && mapBy.count === ranksPerHost) return;
  const given = mapBy.by === 'ppr' ? `ppr:${mapBy.count}:${mapBy.object}` : mapBy.by;
  throw usageError(
    `-N ${ranksPerHost} and --map-by ${given} both say how many ranks a host gets`,
    'leave one of them out',
  );
}

function rankBy(settings: Settings<JobOptionName>, mapBy: MapBy): JobRequest['rankBy'] {
  const by = oneOf(['slot', 'node', 'numa'], settings.text('rank-by'));
  const object = mapBy.by === 'ppr' ? mapBy.object : mapBy.by;
  if (by !== 'numa' || object === 'numa' || object === 'gpu') return by;
  throw usageError(
    '--rank-by numa, but ranks are not dealt to NUMA nodes',
    'add --map-by numa, or --map-by ppr:N:numa',
  );
}

function checkedExport(text: string, settings: Settings<JobOptionName>): string {
  const name = text.split('=', 1)[0] ?? '';
  if (/^([^\s=*]+\*?|\*)$/u.test(name) && !(name.endsWith('*') && text.includes('='))) return text;
  const source = settings.setting('export')?.source ?? '-x';
  throw usageError(`${source} is "${text}"`, "VAR, VAR=value or 'PREFIX*' is wanted");
}

/** Narrows the type; the option's kind has checked the value already. */
function oneOf<const T extends string>(choices: readonly T[], text: string | null): T | null {
  return choices.find((choice) => choice === text) ?? null;
}

function tagOutput(settings: Settings<JobOptionName>, asked: boolean): JobRequest['tagOutput'] {
  const tag = oneOf(['rank', 'host', 'none'], settings.text('tag-output')) ?? (asked ? 'rank' : 'auto');
  if (tag === 'none' && settings.flag('fold')) {
    throw usageError('--fold without tags would not say who wrote a line', 'leave --tag-output=none out');
  }
  return tag;
}

function rankList(settings: Settings<JobOptionName>, name: 'output-ranks'): readonly RankRange[] | null {
  const text = settings.text(name);
  const list = text === null ? null : parseRankList(text);
  if (text === null || list !== null) return list;
  throw usageError(`${settings.setting(name)?.source ?? name} is "${text}"`, 'ranks such as 0,3-5 are wanted');
}
