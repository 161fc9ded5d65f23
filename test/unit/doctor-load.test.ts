/** What doctor says of the load of --full: halves of the hosts, and GPUs together and in pairs. */
import { describe, expect, it } from 'vitest';
import { gpuLoadFindings, pairRounds, type GpuRate } from '../../launcher/doctor/gpu-load.ts';
import { halvesFindings, type GroupRate } from '../../launcher/doctor/halves.ts';

const hosts = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h'];

/** As slow as its slowest host; every measurement is noted. */
function network(rateOf: (group: readonly string[]) => Partial<GroupRate>) {
  const measured: string[] = [];
  const measure = async (groups: readonly (readonly string[])[]) =>
    groups.map((group): GroupRate => {
      measured.push(group.join(''));
      return { hosts: group, rate: 10, wrong: 0, error: null, ...rateOf(group) };
    });
  return { measured, measure };
}

const badOf = async (rateOf: (group: readonly string[]) => Partial<GroupRate>, all = hosts) => {
  const { measure, measured } = network(rateOf);
  const found = await halvesFindings(all, 0.8, measure);
  return { bad: found.filter(({ answer }) => answer !== 'ok'), measured };
};

describe('halves of the hosts', () => {
  it('halves that are equally fast are well after one measurement', async () => {
    expect(await badOf(() => ({}))).toEqual({ bad: [], measured: ['abcd', 'efgh'] });
  });

  it('the slower half is halved, among as many hosts, until two are left', async () => {
    const { bad, measured } = await badOf((group) => ({ rate: group.includes('g') ? 5 : 10 }));
    expect(measured).toEqual(['abcd', 'efgh', 'abcd', 'efgh', 'efab', 'ghab']);
    expect(bad).toMatchObject([{ check: 'network.halves', answer: 'warn', subject: 'g, h' }]);
    expect(bad[0]?.message).toBe(
      'hold up the half of the hosts in which they are: 5.00 GB/s, as many others 10.0 GB/s',
    );
  });

  it('a half that is slow only together points at what its hosts share', async () => {
    const { bad } = await badOf((group) => ({ rate: group.join('') === 'efgh' ? 5 : 10 }));
    expect(bad).toMatchObject([
      { subject: 'e, f, g, h', message: expect.stringContaining('slow together, though not in parts') },
    ]);
  });

  it('a half that was slow once is well', async () => {
    let times = 0;
    const { bad } = await badOf((group) => ({ rate: group.includes('e') && times++ === 0 ? 5 : 10 }));
    expect(bad).toEqual([]);
  });

  it('wrong data and failures are named with their hosts', async () => {
    const wrong = await badOf((group) => ({ wrong: group.includes('b') ? 3 : 0 }));
    expect(wrong.bad).toMatchObject([{ check: 'data.verified', answer: 'fail', subject: 'a, b, c, d' }]);
    const failed = await badOf((group) => (group.includes('b') ? { rate: null, error: 'no route' } : {}));
    expect(failed.bad).toMatchObject([{ check: 'network.halves', answer: 'fail', message: 'no route' }]);
  });

  it('few hosts are one group, and one host is none', async () => {
    expect((await badOf(() => ({}), ['a', 'b', 'c'])).measured).toEqual(['abc']);
    expect((await badOf(() => ({}), ['a'])).measured).toEqual([]);
  });
});

const rate = (changes: Partial<GpuRate>): GpuRate => ({
  host: 'a',
  kind: '8 H100',
  gpus: [0, 1, 2, 3, 4, 5, 6, 7],
  all: true,
  rate: 400,
  predicted: 410,
  wrong: 0,
  error: null,
  ...changes,
});
const findingsOf = (rates: readonly GpuRate[]) =>
  gpuLoadFindings(rates).filter(({ answer }) => answer !== 'ok' && answer !== 'note');

const pair = (gpus: number[], value: number) => rate({ gpus, all: false, rate: value, predicted: null });

describe('the load of GPUs', () => {
  it('equal hosts are well, and their rate stands beside what the planner expects', () => {
    const rates = [rate({}), rate({ host: 'b' }), rate({ host: 'c' })];
    expect(findingsOf(rates)).toEqual([]);
    expect(gpuLoadFindings(rates).find(({ answer }) => answer === 'note')?.message).toBe(
      '400 GB/s; the planner expects 410',
    );
  });

  it('a host that is slower than its equals is named, by how much it is', () => {
    const others = [
      rate({ host: 'b' }),
      rate({ host: 'c' }),
      rate({ host: 'd', kind: '4 A100', rate: 100, predicted: 100 }),
    ];
    expect(findingsOf([rate({ rate: 350 }), ...others])).toMatchObject([
      { check: 'gpu.bandwidth', answer: 'warn', host: 'a', subject: 'all 8 GPUs' },
    ]);
    expect(findingsOf([rate({ rate: 300 }), ...others])).toMatchObject([{ answer: 'fail', host: 'a' }]);
  });

  it('a host without equals is held against the planner', () => {
    expect(findingsOf([rate({ rate: 280 })])).toMatchObject([{ answer: 'warn' }]);
    expect(findingsOf([rate({ rate: 290 })])).toEqual([]);
    expect(findingsOf([rate({ rate: 100, predicted: null })])).toEqual([]);
  });

  it('a pair that is slower than others is named', () => {
    expect(findingsOf([pair([0, 1], 150), pair([0, 2], 150), pair([1, 2], 100)])).toMatchObject([
      { check: 'gpu.pair-bandwidth', answer: 'fail', subject: 'GPUs 1 and 2' },
    ]);
  });

  it('wrong elements and failures are failures', () => {
    expect(findingsOf([rate({ wrong: 2 })])).toMatchObject([
      { check: 'data.verified', message: '2 elements were wrong' },
    ]);
    expect(findingsOf([rate({ rate: null, error: 'out of memory' })])).toMatchObject([{ message: 'out of memory' }]);
  });

  it('every two GPUs meet once, in rounds of disjoint pairs', () => {
    for (const count of [2, 3, 4, 7, 8]) {
      const rounds = pairRounds(count);
      const all = rounds.flat().map((pair) => pair.join(' '));
      expect(new Set(all).size).toBe((count * (count - 1)) / 2);
      expect(all).toHaveLength((count * (count - 1)) / 2);
      for (const round of rounds) expect(new Set(round.flat()).size).toBe(round.length * 2);
    }
    expect(pairRounds(1).flat()).toEqual([]);
  });
});
