/** --doctor, if the user wants it: what looks at the hosts is loaded then only. */
import type { JobOptions } from '../../job/run.ts';
import type { JobRequest } from '../../model/types.ts';
import type { JobOptionName } from '../options.ts';
import type { Settings } from '../settings.ts';

export async function preflightOf(
  settings: Settings<JobOptionName>,
  request: JobRequest,
): Promise<JobOptions['before']> {
  const depth = settings.text('doctor');
  if ((depth !== 'quick' && depth !== 'full' && depth !== 'passive') || request.simulated !== null) return undefined;
  const { preflight } = await import('./doctor.ts');
  return preflight(request, depth);
}
