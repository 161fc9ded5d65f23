/** Two plans that `--format json` wrote, compared field by field. */
import * as v from 'valibot';
import { usageError } from '../model/usage-error.ts';
import { columns } from '../text/columns.ts';
import { messageOf } from '../../control/message-of.ts';

const graph = v.object({
  pattern: v.string(),
  nChannels: v.number(),
  bwIntra: v.number(),
  bwInter: v.number(),
  typeIntra: v.string(),
  typeInter: v.string(),
  crossNic: v.number(),
  sameChannels: v.number(),
  totalBw: v.number(),
  channels: v.array(v.object({ order: v.array(v.number()), nics: v.array(v.number()) })),
});
const plan = v.object({
  version: v.literal(1),
  nodes: v.number(),
  ranks: v.number(),
  nChannels: v.number(),
  ring: graph,
  tree: graph,
  collnet: v.nullable(graph),
  tuning: v.array(
    v.object({
      collective: v.string(),
      bytes: v.number(),
      algorithm: v.string(),
      protocol: v.string(),
      predictedMicroseconds: v.number(),
    }),
  ),
});
type Plan = v.InferOutput<typeof plan>;

interface PlanFile {
  readonly name: string;
  readonly text: string;
}

/** Empty: they are equal. Throws a FailureError (usage). */
export function diffPlans(one: PlanFile, other: PlanFile): string {
  const first = facts(parsed(one));
  const second = facts(parsed(other));
  const rows = [...new Set([...first.keys(), ...second.keys()])]
    .map((key) => [key, first.get(key) ?? '-', second.get(key) ?? '-'])
    .filter(([, before, after]) => before !== after);
  return rows.length === 0 ? '' : columns([['', one.name, other.name], ...rows]);
}

function parsed({ name, text }: PlanFile): Plan {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (error) {
    throw usageError(`${name} is no JSON: ${messageOf(error)}`, REMEDY);
  }
  const result = v.safeParse(plan, json);
  if (result.success) return result.output;
  const [issue] = result.issues;
  throw usageError(`${name} is no plan: ${v.getDotPath(issue) ?? 'the whole'}: ${issue.message}`, REMEDY);
}
const REMEDY = 'write plans with: ncclrun plan --format json > FILE';

/** Everything in it that can differ, by a name for people. */
function facts({ nodes, ranks, nChannels, ring, tree, collnet, tuning }: Plan): Map<string, string> {
  const all = new Map([
    ['hosts', String(nodes)],
    ['ranks', String(ranks)],
    ['channels', String(nChannels)],
  ]);
  for (const [name, one] of Object.entries({ ring, tree, collnet })) {
    if (one === null) continue;
    const { channels, ...plain } = one;
    for (const [field, value] of Object.entries(plain)) all.set(`${name} ${field}`, String(value));
    channels.forEach(({ order, nics }, index) => {
      const by = nics.length === 0 ? '' : ` net ${nics.join(' → ')}`;
      all.set(`${name} channel ${index}`, `${order.join(' ')}${by}`);
    });
  }
  for (const { collective, bytes, algorithm, protocol, predictedMicroseconds } of tuning) {
    all.set(`${collective} ${bytes} B`, `${algorithm} ${protocol} ${predictedMicroseconds} µs`);
  }
  return all;
}
