/** Work of others on the machines while they were measured: a steady neighbour slows all rounds alike, so that their spread does not show it. */
import { FailureError } from '../model/failure-error.ts';
import { foldNames } from '../text/fold-names.ts';
import type { MachineLoad } from './lines.ts';

/** Below this share of a machine it is the noise of any system. */
const NOISE = 0.02;

/** A sentence about the machine with the most work of others; null: there was next to none. */
export function loadRemark(machines: readonly MachineLoad[]): string | null {
  const worst = busiest(machines);
  return worst === null || shareOf(worst) < NOISE ? null : sentence(worst);
}

/** Throws a FailureError where others used more than `maxLoad`, a share, of a machine. */
export function refuseLoad(machines: readonly MachineLoad[], maxLoad: number): void {
  const worst = busiest(machines);
  if (worst === null || shareOf(worst) <= maxLoad) return;
  const over = machines.filter((one) => shareOf(one) > maxLoad).map(({ host }) => host);
  const where = over.length > 1 ? ` (also on ${foldNames(over.filter((host) => host !== worst.host)).join(',')})` : '';
  throw new FailureError({
    type: 'unrepeatable',
    message: `nothing is stored: ${sentence(worst)}${where}`,
    remedy: `run it again when nothing else runs on the hosts (top shows what does), or allow more: --max-load ${Math.ceil(shareOf(worst) * 100)}`,
  });
}

function sentence({ host, processors, others }: MachineLoad): string {
  return `other processes used ${others.toFixed(1)} of ${processors} processors of ${host} during the measurement`;
}

function busiest(machines: readonly MachineLoad[]): MachineLoad | null {
  return machines.toSorted((one, other) => shareOf(other) - shareOf(one))[0] ?? null;
}

function shareOf({ processors, others }: MachineLoad): number {
  return Math.min(1, others / processors);
}
