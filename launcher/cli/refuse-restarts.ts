/** --on-failure and --max-restarts: what they ask for beyond what happens anyway. */
import type { JobOptionName } from './options.ts';
import type { Settings } from './settings.ts';
import { usageError } from './usage-error.ts';

/** What is known by name but not done yet must not be taken for done. Throws a FailureError (usage). */
export function refuseRestarts(settings: Settings<JobOptionName>): void {
  const policy = settings.text('on-failure') ?? 'abort';
  const restarts = settings.integer('max-restarts') ?? 0;
  const source = (name: JobOptionName) => settings.setting(name)?.source ?? `--${name}`;
  if (policy !== 'abort')
    throw usageError(
      `${source('on-failure')} is "${policy}", which this version cannot do: when a rank fails it ends the others`,
      'leave it out, or write --on-failure abort',
    );
  if (restarts > 0)
    throw usageError(
      `${source('max-restarts')} is ${restarts}, but this version starts no job again`,
      'leave it out, or write --max-restarts 0, and start ncclrun again from a script where it fails',
    );
}
