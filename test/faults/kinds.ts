/** Every kind of fault. */
import type { Kind } from './kind.ts';
import { hostKinds } from './kinds/hosts.ts';
import { linkKinds } from './kinds/links.ts';
import { networkKinds } from './kinds/network.ts';
import { pairKinds } from './kinds/pairs.ts';
import { processKinds } from './kinds/processes.ts';
import { rankKinds } from './kinds/ranks.ts';
import { resourceKinds } from './kinds/resources.ts';
import { startKinds } from './kinds/starts.ts';
import { stoppedKinds } from './kinds/stopped.ts';
import { survivorKinds } from './kinds/survivors.ts';
import { suspendedKinds } from './kinds/suspended.ts';

export const kinds: readonly Kind[] = [
  ...processKinds,
  ...hostKinds,
  ...rankKinds,
  ...resourceKinds,
  ...linkKinds,
  ...networkKinds,
  ...startKinds,
  ...stoppedKinds,
  ...pairKinds,
  ...survivorKinds,
  ...suspendedKinds,
];
