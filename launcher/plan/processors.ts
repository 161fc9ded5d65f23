/** The variants of ranks on this machine's processors: as text, or as JSON. */
import { availableParallelism } from 'node:os';
import { planToJson } from '../../control/plan/json.ts';
import type { CommPlan } from '../../control/plan/types.ts';
import { usageError } from '../model/usage-error.ts';
import { localTables } from '../local/host.ts';
import { columns } from '../text/columns.ts';
import { processorsPlan } from './engine.ts';
import { problem } from './measured-here.ts';
import { counted } from '../text/counted.ts';

/** Throws a FailureError (usage), UnplannableError. */
export async function planOnProcessors(ranks: number, format: string): Promise<string> {
  let table: string | null = null;
  const tables = await localTables(process.env, { used: ({ file }) => (table = file), problem });
  const plan = processorsPlan(ranks, availableParallelism(), process.env, tables);
  switch (format) {
    case 'text':
      return processorsText(plan, table);
    case 'json':
      return processorsJson(plan, table);
    case 'engine':
      return planToJson(plan);
    default:
      throw usageError(`--format ${format} shows a topology`, 'give one: --topo FILE');
  }
}

/** `table`: the file that the variants come from; null: nothing was measured. */
function processorsText({ peers, channels, tuning }: CommPlan, table: string | null): string {
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
  return `${peers.length} ranks on processors, ${count}\n${source}\n${columns(rows)}`;
}

function processorsJson({ peers, channels, tuning }: CommPlan, table: string | null): string {
  return `${JSON.stringify({ version: 1, device: 'host', ranks: peers.length, nChannels: channels.length, table, tuning })}\n`;
}
