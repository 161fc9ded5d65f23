/** Predicted and measured times of every variant of ranks on processors of several hosts. */
import type { CollectiveName } from '../../control/plan/types.ts';
import { channelSetOf } from '../../control/planner/channel-set.ts';
import { situationOnHosts } from '../../control/planner/device/host.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { preferencesFrom } from '../../control/planner/input/preferences.ts';
import { fastestAt } from '../../control/planner/measured/times.ts';
import type { Tables } from '../../control/planner/measured/tables.ts';
import { choicesFor, timeOf } from '../../control/planner/tuning/choices.ts';
import { columns } from '../text/columns.ts';
import { networkOf } from './measured-here.ts';

interface Asked {
  readonly collectives: readonly CollectiveName[];
  readonly sizes: readonly number[];
}

/** Nothing for one host, whose variants follow from thresholds. Throws UnplannableError. */
export function variantsText(input: PlanInput, tables: Tables | null, { collectives, sizes }: Asked): string {
  if (input.hosts.length === 1) return '';
  const preferences = preferencesFrom(process.env);
  const shape = { input, channelSet: channelSetOf(input), preferences, network: networkOf(input) };
  const situation = situationOnHosts(shape, tables?.corrections('host', shape) ?? {});
  const table = tables?.find('host', shape)?.table;
  const rows = [['collective', 'bytes', 'algorithm', 'predicted µs', 'measured µs']];
  for (const collective of collectives) {
    const measured = table?.collectives.find((one) => one.collective === collective)?.variants ?? [];
    const choices = choicesFor(collective, situation);
    for (const bytes of sizes) {
      const sorted = choices.toSorted((one, other) => timeOf(one, bytes) - timeOf(other, bytes));
      for (const choice of sorted) {
        const time = fastestAt(measured, choice, bytes);
        const cells = [collective, String(bytes), choice.algorithm, timeOf(choice, bytes).toPrecision(4)];
        rows.push([...cells, time === null ? '' : time.toPrecision(4)]);
      }
    }
  }
  return `\nevery variant, the fastest first\n${columns(rows)}`;
}
