/** Predicted and measured times of every variant of ranks on processors of several hosts. */
import type { CollectiveName } from '../../control/plan/types.ts';
import { channelSetOf } from '../../control/planner/channel-set.ts';
import { situationOnHosts } from '../../control/planner/device/host.ts';
import type { PlanInput } from '../../control/planner/input/input.ts';
import { preferencesFrom } from '../../control/planner/input/preferences.ts';
import type { Preferences } from '../../control/planner/input/preferences.ts';
import { fastestAt } from '../../control/planner/measured/times.ts';
import type { Table } from '../../control/planner/measured/table.ts';
import type { Tables } from '../../control/planner/measured/tables.ts';
import { choicesFor, timeOf } from '../../control/planner/tuning/choices.ts';
import type { Situation } from '../../control/planner/tuning/situation.ts';
import { columns } from '../text/columns.ts';
import { networkOf } from './measured-here.ts';

interface Asked {
  readonly collectives: readonly CollectiveName[];
  readonly sizes: readonly number[];
}

/** What predicts times between hosts, and what was measured there. */
export interface Model {
  readonly situation: Situation;
  readonly preferences: Preferences;
  /** null: nothing was. */
  readonly table: Table | null;
}

/** null: one host, whose variants follow from thresholds. Throws UnplannableError. */
export function modelOf(input: PlanInput, tables: Tables | null): Model | null {
  if (input.hosts.length === 1) return null;
  const preferences = preferencesFrom(process.env);
  const shape = { input, channelSet: channelSetOf(input), preferences, network: networkOf(input) };
  const situation = situationOnHosts(shape, tables?.corrections('host', shape) ?? {});
  return { situation, preferences, table: tables?.find('host', shape)?.table ?? null };
}

export function variantsText({ situation, table }: Model, { collectives, sizes }: Asked): string {
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
  return `every variant, the fastest first\n${columns(rows)}`;
}
