/** Merged settings → what the job is asked to be. */
import type { JobRequest } from '../job/types.ts';
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';
import { usageError } from './usage-error.ts';

const defaultGraceSeconds = 5;

/** Throws a FailureError (usage) for an -x that names nothing. */
export function jobRequest(settings: Settings<JobOptionName>, program: readonly string[]): JobRequest {
  const hosts = settings.list('host');
  return {
    program,
    ranks: settings.integer('np'),
    ranksPerHost: settings.integer('npernode'),
    hostList: hosts.length === 0 ? null : hosts.join(','),
    hostfile: settings.text('hostfile'),
    exports: settings.list('export').map((text) => checkedExport(text, settings)),
    workingDirectory: settings.text('wdir'),
    timeoutSeconds: settings.seconds('timeout'),
    initTimeoutSeconds: settings.seconds('init-timeout'),
    graceSeconds: settings.seconds('grace') ?? defaultGraceSeconds,
    tagOutput: tagOutput(settings.text('tag-output')),
    rsh: settings.text('rsh') ?? 'openssh',
    oversubscribe: settings.flag('oversubscribe'),
    planFile: settings.text('plan'),
  };
}

function checkedExport(text: string, settings: Settings<JobOptionName>): string {
  const name = text.split('=', 1)[0] ?? '';
  if (/^[^\s=*]+\*?$/u.test(name) && !(name.endsWith('*') && text.includes('='))) return text;
  const source = settings.setting('export')?.source ?? '-x';
  throw usageError(`${source} is "${text}"`, "VAR, VAR=value or 'PREFIX*' is wanted");
}

function tagOutput(text: string | null): JobRequest['tagOutput'] {
  return text === 'rank' || text === 'host' || text === 'none' ? text : 'auto';
}
