/** --on-failure, --on-hang and --max-restarts: how often a job is started again. */
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';

/** Where restarts are wanted and no number is given. */
const USUAL_RESTARTS = 3;

/** A number of restarts enables restarts, unless another option disables them. */
export function maxRestarts(settings: Settings<JobOptionName>): number {
  const policy = settings.text('on-failure');
  const given = settings.integer('max-restarts');
  const wanted = policy === 'restart' || settings.text('on-hang') === 'restart';
  if (policy === 'abort' && settings.setting('on-failure')?.origin !== 'default') return 0;
  return given ?? (wanted ? USUAL_RESTARTS : 0);
}
