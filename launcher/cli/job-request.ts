/** Merged settings → what the job is asked to be. */
import type { JobRequest, ProgramRequest } from '../job/types.ts';
import { forwardSignals } from './forward-signals.ts';
import { allocationRequest } from './allocation-request.ts';
import type { JobOptionName } from './options.ts';
import { refuseRestarts } from './refuse-restarts.ts';
import { stdinReaders } from './stdin-readers.ts';
import type { Settings } from './settings.ts';
import { usageError } from './usage-error.ts';

const defaultGraceSeconds = 5;

/** Throws a FailureError (usage) for an -x that names nothing, and lists of ranks or signals that are none. */
export function jobRequest(settings: Settings<JobOptionName>, argv: readonly string[]): JobRequest {
  refuseRestarts(settings);
  return {
    programs: [programRequest(settings, argv)],
    ...allocationRequest(settings),
    timeoutSeconds: settings.seconds('timeout'),
    initTimeoutSeconds: settings.seconds('init-timeout'),
    graceSeconds: settings.seconds('grace') ?? defaultGraceSeconds,
    tagOutput: tagOutput(settings.text('tag-output')),
    outputRanks: settings.text('output-ranks'),
    timestampOutput: settings.flag('timestamp-output'),
    outputFiles: settings.list('output'),
    outputFilename: settings.text('output-filename'),
    mergeStderr: settings.flag('merge-stderr-to-stdout'),
    fold: settings.flag('fold'),
    live: settings.text('live') !== 'never',
    stdin: stdinReaders(settings.text('stdin') ?? '0', settings.setting('stdin')?.source ?? '--stdin'),
    rsh: settings.text('rsh') ?? 'auto',
    stage: settings.text('stage') !== 'never',
    mapBy: settings.text('map-by') ?? 'slot',
    rankBy: oneOf(['slot', 'node', 'numa'], settings.text('rank-by')),
    bindTo: oneOf(['none', 'core', 'numa', 'gpu'], settings.text('bind-to')) ?? 'none',
    reportBindings: settings.flag('report-bindings'),
    isolateGpus: settings.flag('isolate-gpus'),
    spawnTimeoutSeconds: settings.seconds('spawn-timeout'),
    forwardSignals: forwardSignals(
      settings.list('forward-signals'),
      settings.setting('forward-signals')?.source ?? '--forward-signals',
    ),
    oversubscribe: settings.flag('oversubscribe'),
    planFile: settings.text('plan'),
  };
}

function programRequest(settings: Settings<JobOptionName>, argv: readonly string[]): ProgramRequest {
  return {
    argv,
    ranks: settings.integer('np'),
    ranksPerHost: settings.text('npernode') === 'gpu' ? 'gpu' : settings.integer('npernode'),
    exports: settings.list('export').map((text) => checkedExport(text, settings)),
    workingDirectory: settings.text('wdir'),
  };
}

function checkedExport(text: string, settings: Settings<JobOptionName>): string {
  const name = text.split('=', 1)[0] ?? '';
  if (/^[^\s=*]+\*?$/u.test(name) && !(name.endsWith('*') && text.includes('='))) return text;
  const source = settings.setting('export')?.source ?? '-x';
  throw usageError(`${source} is "${text}"`, "VAR, VAR=value or 'PREFIX*' is wanted");
}

/** The option's kind has checked it already; this tells the compiler. */
function oneOf<const T extends string>(choices: readonly T[], text: string | null): T | null {
  return choices.find((choice) => choice === text) ?? null;
}

function tagOutput(text: string | null): JobRequest['tagOutput'] {
  return oneOf(['rank', 'host', 'none'], text) ?? 'auto';
}
