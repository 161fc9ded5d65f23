/** All checks of readings, in the order in which doctor tells of them. */
import type { Check } from '../finding.ts';
import { environmentChecks } from './environment.ts';
import { fileChecks } from './files.ts';
import { gpuChecks } from './gpu.ts';
import { gpuHealthChecks } from './gpu-health.ts';
import { hostChecks } from './host.ts';
import { limitChecks } from './limits.ts';
import { networkChecks } from './network.ts';
import { pathChecks } from './paths.ts';

export const allChecks: readonly Check[] = [
  ...hostChecks,
  ...limitChecks,
  ...fileChecks,
  ...networkChecks,
  ...pathChecks,
  ...gpuChecks,
  ...gpuHealthChecks,
  ...environmentChecks,
];
