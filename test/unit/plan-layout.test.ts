import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import * as layout from '../../control/plan/layout.ts';

/** Field offsets of every struct of a C++ header that holds only fixed-width fields, arrays of them and such structs. */
function structsOf(path: string): Map<string, { fields: Record<string, number>; bytes: number }> {
  const text = readFileSync(new URL(path, import.meta.url), 'utf8')
    .replaceAll(/\/\/.*$/gm, '')
    .replaceAll(/std::array<(.+), (\d+)> (\w+);/g, '$1 $3[$2];');
  const structs = new Map<string, { fields: Record<string, number>; bytes: number }>();
  const widths: Record<string, number> = { uint8_t: 1, uint16_t: 2, uint32_t: 4, uint64_t: 8, float: 4, char: 1 };
  for (const [, name = '', body = ''] of text.matchAll(/struct (\w+) \{([^}]*)\};/g)) {
    const fields: Record<string, number> = {};
    let at = 0;
    let largest = 1;
    for (const [, alignAs, type = '', list = ''] of body.matchAll(/(?:alignas\((\d+)\)\s*)?([\w:<>]+) ([^;]+);/g)) {
      const plain = type.replace(/^std::atomic<(\w+)>$/, '$1');
      const width = widths[plain] ?? structs.get(plain)?.bytes ?? Number.NaN;
      const alignment = Math.max(Number(alignAs ?? 1), widths[plain] ?? 8);
      largest = Math.max(largest, alignment);
      for (const declared of list.split(',')) {
        const [, field = '', count] = /^\s*(\w+?)_?(?:\[(\d+)\])?\s*$/.exec(declared) ?? [];
        at = Math.ceil(at / alignment) * alignment;
        fields[field] = at;
        at += width * Number(count ?? 1);
      }
    }
    structs.set(name, { fields, bytes: Math.ceil(at / largest) * largest });
  }
  return structs;
}

const plan = structsOf('../../native/plan/plan_format.h');
const segment = structsOf('../../native/plan/segment_format.h');

test.each([
  ['Section', layout.SECTION, layout.SECTION_BYTES],
  ['Header', layout.HEADER, layout.PLAN_HEADER_BYTES],
  ['HostRecord', layout.HOST_RECORD, layout.STRIDE.host],
  ['NicRecord', layout.NIC_RECORD, layout.STRIDE.nic],
  ['GpuNicRecord', layout.GPU_NIC_RECORD, layout.STRIDE.gpuNic],
  ['AggregatorRecord', layout.AGGREGATOR_RECORD, layout.STRIDE.aggregator],
  ['PeerRecord', layout.PEER_RECORD, layout.STRIDE.peer],
  ['ChannelRecord', layout.CHANNEL_RECORD, layout.STRIDE.channel],
  ['ShapeRecord', layout.SHAPE_RECORD, layout.STRIDE.shape],
  ['HostRingRecord', layout.HOST_RING_RECORD, layout.STRIDE.hostRing],
  ['HostTreeRecord', layout.HOST_TREE_RECORD, layout.STRIDE.hostTree],
  ['LocalRecord', layout.LOCAL_RECORD, layout.STRIDE.local],
  ['EdgeRecord', layout.EDGE_RECORD, layout.STRIDE.edge],
  ['TuningRecord', layout.TUNING_RECORD, layout.STRIDE.tuning],
  ['VariantRecord', layout.VARIANT_RECORD, layout.STRIDE.variant],
])('%s has the layout of plan_format.h', (name, fields, bytes) => {
  expect(plan.get(name)).toEqual({ fields, bytes });
});

test('the sizes inside the host segment are those of segment_format.h', () => {
  expect(segment.get('AbortBlock')?.bytes).toBe(layout.ABORT_BLOCK_BYTES);
  expect(segment.get('Doorbell')?.bytes).toBe(layout.DOORBELL_BYTES);
  expect(segment.get('NodeBarrier')?.bytes).toBe(layout.NODE_BARRIER_BYTES);
  const text = readFileSync(new URL('../../native/plan/segment_format.h', import.meta.url), 'utf8');
  expect(text).toContain(`sizeof(DeviceRecord) == ${layout.DEVICE_RECORD_BYTES}`);
  expect(text).toContain(`kConnectionHeaderBytes = ${layout.CONNECTION_HEADER_BYTES};`);
  expect(text).toContain(`kLLSteps = ${layout.LL_STEPS};`);
  expect(text).toContain(`kLLStepBytes = ${layout.LL_STEP_BYTES};`);
  expect(text).toContain(`stepBytes[${layout.MAX_STEPS}]`);
});

test('the sizes in GPU memory are those of launch_format.h', () => {
  const text = readFileSync(new URL('../../native/plan/launch_format.h', import.meta.url), 'utf8');
  expect(text).toContain(`kRegionHeaderBytes = ${layout.REGION_HEADER_BYTES};`);
  expect(text).toContain(`kMaxPeers = ${layout.MAX_GPUS};`);
  expect(text).toContain(`kNetHeaderBytes = ${layout.NET_HEADER_BYTES};`);
  expect(text).toContain(`sizeof(SendState) == ${layout.GPU_STATE_BYTES}`);
  expect(text).toContain(`sizeof(RingPosition) == ${layout.RING_POSITION_BYTES}`);
});

test.each([
  ['Algorithm', layout.ALGORITHMS],
  ['Protocol', layout.PROTOCOLS],
  ['Device', layout.DEVICES],
  ['Transport', layout.TRANSPORTS],
  ['EdgeKind', layout.EDGE_KINDS],
  ['Collective', layout.COLLECTIVES],
])('the numbers of %s are those of plan_format.h', (name, names) => {
  const text = readFileSync(new URL('../../native/plan/plan_format.h', import.meta.url), 'utf8');
  const [, list = ''] = new RegExp(`enum class ${name} : uint8_t \\{([^}]*)\\}`).exec(text) ?? [];
  const numbered = [...list.matchAll(/(\w+) = (\d+)/g)].map(([, entry, number]) => [entry, Number(number)]);
  expect(numbered).toEqual(names.map((entry, number) => [entry, number]));
});
