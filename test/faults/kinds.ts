/** Every kind of fault. */
import type { Kind } from './kind.ts';
import { hostKinds } from './kinds/hosts.ts';
import { processKinds } from './kinds/processes.ts';

export const kinds: readonly Kind[] = [...processKinds, ...hostKinds];
