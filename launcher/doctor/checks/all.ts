/** All checks of readings, in the order in which doctor tells of them. */
import type { Check } from '../finding.ts';
import { environmentChecks } from './environment.ts';
import { fileChecks } from './files.ts';
import { gpuChecks } from './gpu.ts';
import { hostChecks } from './host.ts';
import { limitChecks } from './limits.ts';
import { networkChecks } from './network.ts';

export const allChecks: readonly Check[] = [
  ...hostChecks,
  ...limitChecks,
  ...fileChecks,
  ...networkChecks,
  ...gpuChecks,
  ...environmentChecks,
];
