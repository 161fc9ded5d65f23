/** What NCCL answers on the machines of topologies.ts: reference.json there. */
import * as v from 'valibot';
import { sharedText } from './topologies.ts';

const number = v.number();
const graph = v.looseObject({
  nChannels: number,
  bwIntra: number,
  bwInter: number,
  typeIntra: v.string(),
  typeInter: v.string(),
});
const path = v.tuple([v.string(), number, number]);
const chains = v.looseObject({ collnetChain: v.optional(v.union([v.string(), graph])) });
const result = v.object({
  // A later configuration that is the same as an earlier one says so in words.
  system: v.union([
    v.string(),
    v.looseObject({ gpu_paths: v.array(v.array(path)), net_paths: v.array(v.array(path)) }),
  ]),
  ring: v.union([v.string(), graph]),
  tree: v.union([v.string(), graph]),
  final: v.looseObject({
    nNodes: number,
    nChannels: number,
    p2pnChannels: number,
    p2pnChannelsPerPeer: number,
    rings_unique: v.array(v.array(number)),
    ring_of_channel: v.array(number),
    trees_unique: v.array(v.looseObject({ up: v.array(number), down: v.array(v.array(number)) })),
    tree_of_channel: v.array(number),
  }),
  tuning: v.looseObject({ lat_us_bw_GBs: v.record(v.string(), v.record(v.string(), v.tuple([number, number]))) }),
});
const schema = v.object({
  topologies: v.record(
    v.string(),
    v.looseObject({ base: v.record(v.string(), result), coll: v.optional(v.record(v.string(), chains)) }),
  ),
});

export type ReferenceGraph = v.InferOutput<typeof graph>;
export type Reference = v.InferOutput<typeof result>;

/** By machine, then by number of hosts ("N1", "N2", "N4", "N16"). `coll`: if every NIC could reduce. */
export function reference(): v.InferOutput<typeof schema>['topologies'] {
  return v.parse(schema, JSON.parse(sharedText('reference.json'))).topologies;
}
