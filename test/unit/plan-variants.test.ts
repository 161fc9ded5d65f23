/** What --explain shows of every variant of ranks on processors. */
import { afterEach, expect, test, vi } from 'vitest';
import { processorsInput, UNKNOWN_HOST } from '../../launcher/plan/engine.ts';
import { modelOf, variantsText } from '../../launcher/plan/variants.ts';

afterEach(() => void vi.unstubAllEnvs());

const input = (hosts: number) => processorsInput(4, hosts, { ...UNKNOWN_HOST, cores: 8 }, null);
const asked = { collectives: ['allReduce', 'broadcast'], sizes: [8, 1 << 20] } as const;

test('every variant stands there for each collective and size, the fastest first', () => {
  const model = modelOf(input(2), null);
  if (model === null) throw new Error('there are two hosts');
  const text = variantsText(model, asked);
  expect(text.startsWith('every variant, the fastest first\n')).toBe(true);
  const rows = text
    .trim()
    .split('\n')
    .slice(1)
    .map((line) => line.trim().split(/\s{2,}|\s(?=\S+$)/u));
  expect(rows[0]?.join(' ')).toBe('collective bytes algorithm predicted µs measured µs');
  const cells = text
    .trim()
    .split('\n')
    .slice(2)
    .map((line) => line.trim().split(/\s+/u));
  for (const collective of asked.collectives) {
    for (const size of asked.sizes) {
      const group = cells.filter(([name, bytes]) => name === collective && bytes === String(size));
      expect(group.length).toBeGreaterThan(1);
      expect(new Set(group.map(([, , algorithm]) => algorithm)).size).toBe(group.length);
      const times = group.map(([, , , predicted]) => Number(predicted));
      expect(times).toEqual(times.toSorted((one, other) => one - other));
      expect(group.every(({ length }) => length === 4)).toBe(true); // nothing was measured
    }
  }
});

test('one host has no model, because its variants follow from thresholds', () => {
  expect(modelOf(input(1), null)).toBeNull();
});
