/** What the planner decides for the GPUs of one host. */
import { describe, expect, test } from 'vitest';
import { decodeHostPlan } from '../../control/plan/decode.ts';
import { encodeHostPlan } from '../../control/plan/encode.ts';
import type { CollectiveName, CommPlan, TuningRow } from '../../control/plan/types.ts';
import { isVariantBetweenGpuHosts } from '../../control/plan/possible.ts';
import type { CollnetName } from '../../control/plan/possible.ts';
import { validatePlan } from '../../control/plan/validate.ts';
import { Planner } from '../../control/planner/planner.ts';
import { gpuInput, gpuPlan } from '../rig/plans.ts';

function rowsIn(environment: Readonly<Record<string, string>>): readonly TuningRow[] {
  return new Planner(null, environment).plan(gpuInput(4), true).tuning;
}

function isDirectSimple({ collective, variants }: TuningRow, wanted: CollectiveName): boolean {
  return collective === wanted && variants[0]?.algorithm === 'directOneShot' && variants[0].protocol === 'simple';
}

/** The largest size that goes under LL or LL128. */
function lastWithLines(rows: readonly TuningRow[], collective: CollectiveName): number {
  const lines = rows.filter((row) => row.collective === collective && row.variants[0]?.protocol !== 'simple');
  return lines.at(-1)?.upToBytes ?? Infinity;
}

function algorithmsBetween(ranks: number, hosts: number): (string | undefined)[] {
  const rows = gpuPlan(ranks, hosts).tuning.filter(({ collective }) => collective === 'allReduce');
  return [...new Set(rows.map(({ variants }) => variants[0]?.algorithm))];
}

/** A plan of two hosts whose all-reduces the network is to reduce in these forms. */
function reducedBy(ranks: number, ...forms: readonly CollnetName[]): CommPlan {
  const plan = gpuPlan(ranks, 2);
  const tuning = plan.tuning.map((row): TuningRow => {
    const [variant] = row.variants;
    if (row.collective !== 'allReduce' || variant === undefined) return row;
    const requires = ['networkReduction'] as const;
    const byNetwork = forms.map((algorithm) => ({ ...variant, algorithm, protocol: 'simple' as const, requires }));
    return { ...row, variants: [...byNetwork, ...row.variants] };
  });
  return { ...plan, tuning };
}

describe('the planner for GPUs', () => {
  test.each([1, 2, 3, 4, 8, 16])('the planner makes a valid plan for %i GPUs, and the same one again', (ranks) => {
    const plan = gpuPlan(ranks);
    validatePlan(plan);
    expect(plan).toEqual(gpuPlan(ranks));
    expect(plan.device).toBe('cuda');
    expect(decodeHostPlan(encodeHostPlan(plan, 0)).plan.tuning).toHaveLength(plan.tuning.length);
  });

  test('every LL128 variant requires whole lines and has a Simple variant to fall back to', () => {
    for (const { variants } of gpuPlan(4).tuning) {
      for (const [index, { protocol, requires }] of variants.entries()) {
        if (protocol !== 'll128') continue;
        expect(requires).toContain('wholeLines');
        expect(variants[index + 1]?.protocol).toBe('simple');
      }
    }
  });

  test('a small allReduce uses one channel and few threads', () => {
    const [first, ...others] = gpuPlan(4).tuning.filter(({ collective }) => collective === 'allReduce');
    expect(first?.variants[0]).toMatchObject({ algorithm: 'directOneShot', protocol: 'll', channels: 1, threads: 64 });
    const last = others.at(-1)?.variants ?? [];
    expect(last[0]).toMatchObject({ algorithm: 'copyEngine', requires: ['publishedAddresses'] });
    expect(last[1]).toMatchObject({ algorithm: 'ring', protocol: 'simple', threads: 512, requires: [] });
  });

  test('a copy-engine broadcast is divided into chunks only with more than two ranks', () => {
    for (const ranks of [2, 3, 8]) {
      const rows = gpuPlan(ranks).tuning.filter(({ collective }) => collective === 'broadcast');
      const chunks = rows.flatMap(({ variants }) => variants.filter(({ algorithm }) => algorithm === 'copyEngine'));
      expect(chunks).not.toEqual([]);
      for (const { chunkBytes } of chunks) expect(chunkBytes).toBe(ranks === 2 ? 2 ** 40 : 32 * 2 ** 20);
    }
  });

  test('copy engines carry large transfers without a reduction, and every row has another variant', () => {
    for (const ranks of [2, 4, 8]) {
      for (const row of gpuPlan(ranks).tuning) {
        const moves = !['reduce', 'barrier'].includes(row.collective);
        const pulls = ['allReduce', 'reduceScatter'].includes(row.collective);
        // One rank's links are all that a gather or scatter has: kernels do more of them as fast.
        const large = (['gather', 'scatter'].includes(row.collective) ? 256 : 32) * 1024 * 1024;
        const isLarge = row.upToBytes === null || row.upToBytes >= large;
        const byCopies = row.variants.filter(({ algorithm }) => algorithm === 'copyEngine');
        if (isLarge && !pulls) expect(byCopies).toHaveLength(moves ? 1 : 0);
        for (const variant of byCopies) expect(variant.requires).toEqual(['publishedAddresses']);
        // What reads the others' operands is a kernel, of few blocks.
        for (const { channels } of byCopies) expect(channels).toBe(pulls ? 16 : 1);
        expect(row.variants.at(-1)?.requires).toEqual([]);
      }
    }
    for (const wishes of [{ NCCL_P2P_DISABLE: '1' }, { NCCL_P2P_LEVEL: 'LOC' }, { NCCL_P2P_LEVEL: '0' }]) {
      const variants = rowsIn(wishes).flatMap((row) => row.variants);
      expect(variants.filter(({ algorithm }) => algorithm === 'copyEngine')).toEqual([]);
    }
    const direct = rowsIn({ NCCL_ALGO: 'copyengine' }).filter(({ collective }) => collective === 'allGather');
    expect(direct.map(({ variants }) => variants[0]?.algorithm)).toEqual(direct.map(() => 'copyEngine'));
  });

  test('the plan obeys NCCL_ALGO and NCCL_PROTO where a collective has the variant', () => {
    const rows = rowsIn({ NCCL_PROTO: 'simple' }).filter(({ collective }) => collective !== 'barrier');
    const protocols = rows.map(({ variants }) => variants[0]?.protocol);
    expect(new Set(protocols)).toEqual(new Set(['simple']));
    const allReduce = rowsIn({ NCCL_ALGO: 'tree' }).filter(({ collective }) => collective === 'allReduce');
    expect(new Set(allReduce.map(({ variants }) => variants[0]?.algorithm))).toEqual(new Set(['tree']));
  });

  test.each([4, 8, 16])('the plan uses at most %i SMs and switches to Simple earlier', (max) => {
    for (const ranks of [2, 4, 8]) {
      const wide = gpuPlan(ranks);
      const plan = new Planner(null, { NCCLRUN_MAX_SMS: String(max) }).plan(gpuInput(ranks), true);
      validatePlan(plan);
      expect(plan.channels).toHaveLength(max);
      for (const { collective, variants } of plan.tuning) {
        for (const { channels } of variants) expect(channels).toBeLessThanOrEqual(max);
        const [first] = variants;
        // Where it becomes messages, it has a block for each of them, and some for copies.
        const messages = 2 * (ranks - 1);
        const isInMessages = max - plan.copyChannels >= messages && first?.protocol === 'simple';
        if (isInMessages && collective === 'allToAll')
          expect(messages * first.channels + plan.copyChannels).toBeLessThanOrEqual(max);
      }
      for (const collective of ['allReduce', 'allGather', 'reduceScatter'] as const) {
        expect(lastWithLines(plan.tuning, collective)).toBeLessThan(lastWithLines(wide.tuning, collective));
      }
    }
  });

  test('large reductions of more than two ranks use rings unless NCCL_ALGO selects another algorithm', () => {
    const large = (environment: Readonly<Record<string, string>>): string | undefined => {
      const rows = rowsIn(environment).filter(({ collective }) => collective === 'reduceScatter');
      return rows.map(({ variants }) => `${variants[0]?.algorithm} ${variants[0]?.protocol}`).at(-1);
    };
    expect(rowsIn({}).some((row) => isDirectSimple(row, 'reduceScatter'))).toBe(false);
    expect(large({})).toBe('ring simple');
    expect(large({ NCCL_ALGO: 'direct', NCCL_PROTO: 'simple' })).toBe('directOneShot simple');
  });

  test('the planner rejects two ranks on one GPU and names both unless they may share it', () => {
    const input = gpuInput(2);
    const [first] = input.peers;
    if (first === undefined) throw new Error('there are two');
    const shared = { ...input, peers: [first, first] };
    expect(() => new Planner(null).plan(shared, true)).toThrow(/duplicate GPU: ranks 0 and 1 both use .*10020/);
    expect(new Planner(null, { NCCL_MULTI_RANK_GPU_ENABLE: '1' }).plan(shared, true).device).toBe('cuda');
  });

  test('GPUs of several hosts have rings and messages of protocols Simple and LL, on few channels', () => {
    const plan = gpuPlan(4, 2);
    validatePlan(plan);
    expect(plan.channels).toHaveLength(16);
    expect(plan.transports.otherHost).toBe('socket');
    expect(plan.hosts.map(({ nics }) => nics.length)).toEqual([1, 1]);
    const pairChannels = plan.gpuBuffers?.wideChannels ?? 0;
    for (const { collective, variants } of plan.tuning) {
      for (const variant of variants)
        expect(isVariantBetweenGpuHosts(collective, variant, { ranks: 4, pairChannels })).toBe(true);
    }
    expect(decodeHostPlan(encodeHostPlan(plan, 1)).plan.tuning).toEqual(plan.tuning);
  });

  test('between hosts protocol LL carries up to some KiB, and Simple what is larger or where a card reaches the GPUs', () => {
    const rows = gpuPlan(2, 2).tuning.filter(({ collective }) => collective === 'allReduce');
    const largest = Math.max(
      ...rows.flatMap(({ upToBytes, variants }) => (variants[0]?.protocol === 'll' ? [upToBytes ?? Infinity] : [])),
    );
    expect(largest).toBeGreaterThan(1024);
    expect(largest).toBeLessThan(4096);
    for (const { variants } of gpuPlan(2, 2).tuning) {
      expect(variants.at(-1)).toMatchObject({ protocol: 'simple', requires: [] });
      for (const { protocol, requires } of variants) expect(requires).toEqual(protocol === 'll' ? ['hostSlots'] : []);
    }
  });

  test('between hosts small operations go directly or by trees, large ones by rails or rings', () => {
    expect(algorithmsBetween(2, 2)).toEqual(['directOneShot']);
    expect(algorithmsBetween(4, 2)).toEqual(['directOneShot', 'rail']);
    expect(algorithmsBetween(16, 2)).toEqual(['rail']);
    expect(algorithmsBetween(32, 4)).toEqual(['rail']);
    expect(algorithmsBetween(48, 24)).toEqual(['tree', 'ring']);
  });

  test('rails have connections on all channels, with slots of bounded memory', () => {
    const plan = gpuPlan(16, 2);
    const max = Math.max(...plan.tuning.map(({ variants }) => variants[0]?.channels ?? 0));
    expect(plan.gpuBuffers).toMatchObject({ wideChannels: 16, pairChannels: 1, ll128StepBytes: 128 });
    expect(plan.gpuBuffers?.llStepBytes).toBeGreaterThan(128);
    expect(max).toBe(16);
    expect(gpuPlan(18, 9).pairBuffer.stepBytes).toBeLessThan(gpuPlan(4, 2).pairBuffer.stepBytes);
    expect(gpuPlan(15, 2).gpuBuffers).toMatchObject({ wideChannels: 1, pairChannels: 1 });
    const unlike = gpuPlan(3, 2);
    const tuning = unlike.tuning.map((row): TuningRow => {
      const variants = row.variants.map((variant) => ({ ...variant, algorithm: 'rail' as const }));
      return row.collective === 'allGather' ? { ...row, variants } : row;
    });
    expect(() => validatePlan({ ...unlike, tuning })).toThrow(
      /tuning\[\d+\]: algorithm rail needs several hosts with equally many ranks/,
    );
  });

  test('a plan has one form in which the network reduces, which suits its hosts', () => {
    validatePlan(reducedBy(3, 'collnetChain'));
    validatePlan(reducedBy(4, 'collnet'));
    expect(() => validatePlan(reducedBy(3, 'collnet'))).toThrow(
      /tuning\[0\]: algorithm collnet needs several hosts with equally many ranks/,
    );
    expect(() => validatePlan(reducedBy(4, 'collnetChain', 'collnet'))).toThrow(
      'tuning[0]: a plan can have collnet or collnetChain, not both',
    );
  });

  test('the planner rejects more GPUs than the engine connects and suggests the host device', () => {
    expect(() => gpuPlan(34, 2)).toThrow(
      /has 17 GPUs on [^ ]+: this version connects at most 16 of one host; use NCCLRUN_DEVICE=host/,
    );
  });
});
