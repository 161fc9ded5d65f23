/** The variants of ranks on this machine's processors: as text, or as JSON. */
import { availableParallelism } from 'node:os';
import { planToJson } from '../../control/plan/json.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { usageError } from '../model/usage-error.ts';
import type { CollectiveName } from '../../control/plan/types.ts';
import { Planner } from '../../control/planner/planner.ts';
import type { AggregatorPlace } from '../../control/planner/input/network-reduction.ts';
import { columns } from '../text/columns.ts';
import { byNetworkView } from './by-network.ts';
import type { ByNetworkView } from './by-network.ts';
import { byNetworkText } from './by-network-text.ts';
import { aggregatorsAt, processorsInput, UNKNOWN_HOST, withoutNetwork } from './engine.ts';
import { networkText, tablesHere, thisHost } from './measured-here.ts';
import { modelOf, variantsText } from './variants.ts';
import type { Model } from './variants.ts';
import { counted } from '../text/counted.ts';

interface PlannedRanks {
  readonly ranks: number;
  readonly hosts: number;
  /** One machine plays all hosts. */
  readonly isOneMachine: boolean;
  readonly aggregatorPlaces: readonly AggregatorPlace[];
}

interface Shown {
  readonly collectives: readonly CollectiveName[];
  readonly sizes: readonly number[];
  readonly explain: boolean;
}

/** Throws a FailureError (usage), UnplannableError. */
export async function planOnProcessors(
  { ranks, hosts, isOneMachine, aggregatorPlaces }: PlannedRanks,
  format: string,
  shown: Shown,
): Promise<string> {
  if (ranks < hosts)
    throw usageError(
      `${ranks} ranks for ${hosts} hosts`,
      'each host has at least one rank: give more ranks or fewer nodes',
    );
  let table: string | null = null;
  const tables = await tablesHere((file) => (table = file));
  const known = hosts > 1 ? thisHost(isOneMachine) : { ...UNKNOWN_HOST, cores: availableParallelism() };
  const input = { ...processorsInput(ranks, hosts, known, tables), aggregators: aggregatorsAt(aggregatorPlaces) };
  const plan = new Planner(null, process.env).plan(input, true);
  switch (format) {
    case 'text':
      return (
        networkText(input) +
        processorsText(plan, table) +
        (shown.explain ? explanation(plan, modelOf(input, tables), shown) : '')
      );
    case 'json':
      return processorsJson(plan, table, byNetworkOf(plan, modelOf(input, tables), shown));
    case 'engine':
      return planToJson({ ...plan, ...(hosts === 1 ? { hosts: withoutNetwork(plan).hosts } : withoutNetwork(plan)) });
    default:
      throw usageError(`--format ${format} shows a topology`, 'give one: --topo FILE');
  }
}

/** `table`: the file that the variants come from; null: nothing was measured. */
function processorsText({ peers, hosts, channels, tuning }: CommPlan, table: string | null): string {
  const source = table === null ? '' : `  measured: ${table}\n`;
  const rows = [['collective', 'up to bytes', 'algorithm', 'protocol', 'channels', 'predicted µs', 'and per MiB']];
  for (const { collective, upToBytes, variants } of tuning) {
    const [variant] = variants;
    if (variant === undefined) continue;
    rows.push([
      collective,
      upToBytes === null ? 'all' : String(upToBytes),
      variant.algorithm,
      variant.protocol,
      String(variant.channels),
      variant.predictedMicroseconds.toFixed(2),
      variant.predictedMicrosecondsPerMebibyte.toFixed(1),
    ]);
  }
  const count = counted(channels.length, 'channel');
  const where = hosts.length === 1 ? '' : ` of ${hosts.length} hosts`;
  return `${peers.length} ranks on processors${where}, ${count}\n${source}\n${columns(rows)}`;
}

/** Nothing for one host, whose variants follow from thresholds. */
function explanation(plan: CommPlan, model: Model | null, shown: Shown): string {
  if (model === null) return '';
  return `\n${byNetworkText(byNetworkOf(plan, model, shown))}${variantsText(model, shown)}`;
}

function byNetworkOf({ tuning }: CommPlan, model: Model | null, { sizes }: Shown): ByNetworkView | null {
  if (model === null) return null;
  const { situation, preferences } = model;
  const measured = model.table?.collectives.find(({ collective }) => collective === 'allReduce')?.variants ?? [];
  return byNetworkView({ tuning, situation, preferences, measured, sizes });
}

function processorsJson(
  { peers, channels, tuning }: CommPlan,
  table: string | null,
  byNetwork: ByNetworkView | null,
): string {
  const facts = { version: 1, device: 'host', ranks: peers.length, nChannels: channels.length };
  return `${JSON.stringify({ ...facts, table, tuning, byNetwork })}\n`;
}
