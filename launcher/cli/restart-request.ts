/** --on-failure, --on-hang and --max-restarts: how often a job is started again. */
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';
import { usageError } from '../model/usage-error.ts';

/** Where restarts are wanted and no number is given. */
const USUAL_RESTARTS = 3;

/** A number of restarts enables restarts, unless another option disables them. */
export function maxRestarts(settings: Settings<JobOptionName>): number {
  const policy = settings.text('on-failure');
  refuseContradiction(settings);
  const given = settings.integer('max-restarts');
  const wanted = policy === 'restart' || settings.text('on-hang') === 'restart';
  if (policy === 'abort' && settings.setting('on-failure')?.origin !== 'default') return 0;
  return given ?? (wanted ? USUAL_RESTARTS : 0);
}

/** Both on the command line; a number of restarts in a settings file is for the jobs that are started again. */
function refuseContradiction(settings: Settings<JobOptionName>): void {
  const policy = settings.setting('on-failure');
  const [wanted = ''] = policy?.values ?? [];
  if (policy?.origin !== 'flag' || wanted === 'restart') return;
  for (const name of ['max-restarts', 'on-hang'] as const) {
    const other = settings.setting(name);
    const value = other?.values.at(-1) ?? '';
    if (other?.origin !== 'flag' || (name === 'on-hang' ? value !== 'restart' : value === '0')) continue;
    throw usageError(
      `${policy.source} ${wanted} and ${other.source} ${value} contradict each other: with ${wanted} nothing is started again`,
      'leave one of them out, or write --on-failure restart',
    );
  }
}
