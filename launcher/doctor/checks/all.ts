/** All checks of readings, in the order in which doctor tells of them. */
import type { Check } from '../finding.ts';
import { environmentChecks } from './environment.ts';
import { fileChecks } from './files.ts';
import { gpuChecks } from './gpu.ts';
import { gpuHealthChecks } from './gpu-health.ts';
import { hostChecks } from './host.ts';
import { layoutChecks } from './layout.ts';
import { limitChecks } from './limits.ts';
import { loginChecks } from './login.ts';
import { networkChecks } from './network.ts';
import { pathChecks } from './paths.ts';
import { roceChecks } from './roce.ts';
import { systemChecks } from './system.ts';

export const allChecks: readonly Check[] = [
  ...loginChecks,
  ...hostChecks,
  ...systemChecks,
  ...limitChecks,
  ...fileChecks,
  ...networkChecks,
  ...roceChecks,
  ...pathChecks,
  ...layoutChecks,
  ...gpuChecks,
  ...gpuHealthChecks,
  ...environmentChecks,
];
