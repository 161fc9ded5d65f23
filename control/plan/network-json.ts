/** The parts of a plan file that speak of the network. */
import * as v from 'valibot';
import { GPU_DIRECT_VERDICTS } from './gpu-nics.ts';

const count = v.pipe(v.number(), v.integer(), v.minValue(0));

export const network = v.strictObject({
  name: v.string(),
  sockets: v.optional(count, 1),
  socketThreads: v.optional(count, 0),
});

export const nic = v.strictObject({
  name: v.string(),
  address: v.string(),
  port: v.optional(count, 0),
  speedMbps: v.optional(count, 0),
  pciPath: v.optional(v.nullable(v.string()), null),
  gpuDirect: v.optional(v.boolean(), false),
  gpuDirectReason: v.optional(v.string(), ''),
  gpuPaths: v.optional(v.array(v.strictObject({ rank: count, type: v.string(), bandwidth: count })), []),
});

const verdict = v.picklist(GPU_DIRECT_VERDICTS);
export const gpuNic = v.strictObject({
  local: count,
  card: v.nullable(v.string()),
  path: v.string(),
  receives: verdict,
  sends: verdict,
});
