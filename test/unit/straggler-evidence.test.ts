/** What is said about why a rank or a link is slow, from what its host's kernel and driver have counted in two answers. */
import { describe, expect, it } from 'vitest';
import type { GpuHealth, HostHealth, NicErrors } from '../../control/messages/host-health.ts';
import type { HostRankPositions, RankProcess } from '../../control/messages/hang.ts';
import { linkEvidence, rankEvidence } from '../../launcher/straggler/evidence.ts';
import { GpuHealthReader } from '../../worker/agent/gpu-health.ts';
import { nicErrors } from '../../worker/agent/nic-errors.ts';
import { readings } from '../rig/positions.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

const address = (rank: number): string => `0000:${rank}b:00.0`;
const healthy = (rank: number): GpuHealth => ({
  address: address(rank),
  clock: 1980,
  maxClock: 1980,
  throttleReasons: 0,
  corrected: 7,
  uncorrected: 0,
  pcieWidth: 16,
  maxPcieWidth: 16,
});

interface Changes {
  readonly gpu?: Partial<GpuHealth>;
  readonly nics?: readonly NicErrors[];
  readonly process?: Partial<RankProcess>;
  readonly where?: Partial<HostRankPositions>;
}

/** Two ranks on each of two hosts; `changes` of rank 3 and its host h1. */
function answers({ gpu = {}, nics = [], process = {}, where = {} }: Changes) {
  const processes = Object.fromEntries(
    [0, 1, 2, 3].map((rank) => [
      rank,
      { gpu: { index: rank % 2, address: address(rank) }, ...(rank === 3 ? process : {}) },
    ]),
  );
  const [reading] = readings({ comms: [{ id: 'c0ffee'.padStart(16, '0'), ranks: [0, 1, 2, 3] }], processes });
  const health = (host: string): HostHealth => {
    const ranks = host === 'h1' ? [2, 3] : [0, 1];
    return {
      nics: host === 'h1' ? nics : [],
      gpus: ranks.map((rank) => ({ ...healthy(rank), ...(rank === 3 ? gpu : {}) })),
    };
  };
  return new Map(
    Array.from(reading.answers, ([host, one]) => [
      host,
      { where: { ...one, health: health(host), ...(host === 'h1' ? where : {}) } },
    ]),
  );
}

/** Of rank 3, as texts. */
function said(before: Changes, now: Changes): string[] {
  return rankEvidence(3, answers(before), answers(now)).map(({ kind, subject, value, unit }) =>
    `${subject}: ${kind} ${value} ${unit ?? ''}`.trim(),
  );
}

/** Where the GPUs of the first host are of another kind. */
function withOneOther(clock: number) {
  const all = answers({ gpu: { clock } });
  return new Map(
    [...all].map(([host, { where }]) => {
      const gpus = where.health?.gpus.map((gpu) => (host === 'h0' ? { ...gpu, maxClock: 1 } : gpu)) ?? [];
      return [host, { where: { ...where, health: { nics: [], gpus } } }] as const;
    }),
  );
}

describe('evidence about a rank', () => {
  it('nothing is said about a rank of a healthy host', () => {
    expect(said({}, {})).toEqual([]);
    expect(rankEvidence(9, answers({}), answers({}))).toEqual([]);
  });

  it.each<[string, Changes, Changes, string[]]>([
    [
      'a GPU that is throttled',
      {},
      { gpu: { throttleReasons: 0x45 } },
      ['GPU 1: throttle-reason power cap, thermal slowdown by hardware'],
    ],
    ['a GPU that idles, or whose clocks were set', {}, { gpu: { throttleReasons: 0x3 } }, []],
    [
      'a clock that is lower than those of the other GPUs',
      {},
      { gpu: { clock: 1200 } },
      ['GPU 1: gpu-clock 1200 MHz', 'GPU 1: usual-gpu-clock 1980 MHz'],
    ],
    ['a clock of a GPU that has nothing to do', {}, { gpu: { clock: 345, throttleReasons: 1 } }, []],
    ['a clock of a GPU that is of another kind', {}, { gpu: { clock: 1200, maxClock: 1410 } }, []],
    [
      'ECC errors that are new',
      {},
      { gpu: { corrected: 9, uncorrected: 1 } },
      ['GPU 1: ecc-errors 1 uncorrected', 'GPU 1: ecc-errors 2 corrected'],
    ],
    ['a PCIe link that is narrow', {}, { gpu: { pcieWidth: 8 } }, ['GPU 1: pcie-width 8 of 16 lanes']],
    [
      'a GPU of which the driver says nothing',
      {},
      { gpu: { clock: null, throttleReasons: null, corrected: null, uncorrected: null, pcieWidth: null } },
      [],
    ],
    [
      'a NIC that counts errors',
      { nics: [{ nic: 'eth0', counters: { rx_errors: 5 } }] },
      { nics: [{ nic: 'eth0', counters: { rx_errors: 7, tx_dropped: 10, rx_dropped: 9 } }] },
      ['eth0: nic-errors 2 rx_errors', 'eth0: nic-errors 10 tx_dropped'],
    ],
    [
      'a rank in uninterruptible sleep',
      {},
      { process: { state: 'uninterruptible' } },
      ['rank 3: process-state uninterruptible'],
    ],
    [
      'a cgroup whose CPU limit holds a rank up',
      { process: { throttled: 4 } },
      { process: { throttled: 9 } },
      ['rank 3: throttled 5 periods'],
    ],
    [
      'a hypervisor that takes 5 % of a CPU',
      { where: { stolenMs: 0 } },
      { where: { stolenMs: 50, monotonicUs: 101_000_000 } },
      ['h1: stolen 5 % of a CPU'],
    ],
    [
      'a hypervisor that takes less',
      { where: { stolenMs: 0 } },
      { where: { stolenMs: 49, monotonicUs: 101_000_000 } },
      [],
    ],
    ['a hypervisor that says nothing now', { where: { stolenMs: 0 } }, { where: { monotonicUs: 101_000_000 } }, []],
    ['a hypervisor of which nothing was known before', {}, { where: { stolenMs: 500, monotonicUs: 101_000_000 } }, []],
    ['two answers of one moment', { where: { stolenMs: 0 } }, { where: { stolenMs: 500 } }, []],
    ['a clock that is a tenth lower than others', {}, { gpu: { clock: 1782 } }, []],
    [
      'a clock that is lower by more than a tenth',
      {},
      { gpu: { clock: 1781 } },
      ['GPU 1: gpu-clock 1781 MHz', 'GPU 1: usual-gpu-clock 1980 MHz'],
    ],
    [
      'all reasons why a busy GPU is slow',
      {},
      { gpu: { throttleReasons: 0x1_ff & ~1 } },
      [
        'GPU 1: throttle-reason power cap, hardware slowdown, thermal slowdown by software, thermal slowdown by hardware, power brake',
      ],
    ],
    ['a narrow link of a GPU that the rank does not use', {}, { process: { gpu: null }, gpu: { pcieWidth: 8 } }, []],
    ['a cgroup that held the rank up before', { process: { throttled: 9 } }, { process: { throttled: 9 } }, []],
    ['a cgroup of which nothing was known before', {}, { process: { throttled: 9 } }, []],
    [
      'a NIC of which nothing was known before',
      {},
      { nics: [{ nic: 'eth0', counters: { rx_errors: 1, tx_dropped: 9 } }] },
      ['eth0: nic-errors 1 rx_errors'],
    ],
    [
      'a hypervisor that takes CPU time',
      { where: { stolenMs: 0 } },
      { where: { stolenMs: 100, monotonicUs: 101_000_000 } },
      ['h1: stolen 10 % of a CPU'],
    ],
  ])('%s is said in so many facts', (_, before, now, facts) => {
    expect(said(before, now)).toEqual(facts);
  });

  it('the clock of the only other GPU of the kind is the usual one', () => {
    expect(rankEvidence(3, withOneOther(1200), withOneOther(1200)).map(({ value }) => value)).toEqual([1200, 1980]);
    const alone = new Map(
      [...withOneOther(1200)].map(([host, { where }]) => {
        const gpus = where.health.gpus.slice(host === 'h0' ? 0 : 1);
        return [host, { where: { ...where, health: { nics: [], gpus } } }] as const;
      }),
    );
    expect(rankEvidence(3, alone, alone)).toEqual([]);
  });

  it('the first window says nothing about what was counted before', () => {
    const now = answers({ nics: [{ nic: 'eth0', counters: { rx_errors: 7 } }], gpu: { uncorrected: 3 } });
    expect(rankEvidence(3, new Map(), now)).toEqual([]);
  });
});

it('errors of the NIC at an end of a link are said, by card or by port', () => {
  const counters = { symbol_error: 3 };
  const nics = [
    { nic: 'mlx5_1:1', counters },
    { nic: 'mlx5_10:1', counters },
  ];
  const end = { host: 'h1', nic: 'mlx5_1', ranks: [3] };
  expect(linkEvidence(end, answers({}), answers({ nics }))).toEqual([
    { kind: 'nic-errors', host: 'h1', subject: 'mlx5_1:1', value: 3, unit: 'symbol_error' },
  ]);
});

it('the kernel’s counters of interfaces and of InfiniBand ports are read, those that are 0 or no number are left out', () => {
  using sysfs = new FakeSysfs();
  sysfs.write('sys/class/net/lo/statistics/rx_errors', '5');
  sysfs.write('sys/class/net/eth0/statistics/rx_errors', '5');
  sysfs.write('sys/class/net/eth0/statistics/tx_dropped', '0');
  sysfs.write('sys/class/net/eth0/carrier_down_count', '2');
  sysfs.write('sys/class/net/eth1/statistics/rx_dropped', 'N/A');
  sysfs.write('sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error', '12');
  sysfs.write('sys/class/infiniband/mlx5_0/ports/1/hw_counters/out_of_sequence', '3');
  expect(nicErrors(sysfs.root)).toEqual([
    { nic: 'eth0', counters: { rx_errors: 5, carrier_down_count: 2 } },
    { nic: 'mlx5_0:1', counters: { symbol_error: 12, out_of_sequence: 3 } },
  ]);
});

it('the health of GPUs is what NVML answered last, which is asked only once while it has not', async () => {
  const { address: _, ...values } = healthy(1);
  const questions: PromiseWithResolvers<void>[] = [];
  const reader = new GpuHealthReader({
    async gpuHealth() {
      const question = Promise.withResolvers<void>();
      questions.push(question);
      await question.promise;
      return questions.length === 2 ? 'the driver is gone' : [{ busId: '00000000:1B:00.0', ...values }];
    },
  });
  const own = new Set([address(1)]);
  expect(reader.read(new Set())).toEqual([]);
  expect([reader.read(own), reader.read(own), questions.length]).toEqual([[], [], 1]);
  questions[0]?.resolve();
  await expect.poll(() => reader.read(own)).toEqual([healthy(1)]);
  expect(questions).toHaveLength(2);
  questions[1]?.resolve();
  await expect.poll(() => (reader.read(own), questions.length)).toBe(3);
  expect(reader.read(own)).toEqual([healthy(1)]);
  expect(reader.read(new Set([address(0)]))).toEqual([]);
});
