/** What grew under doctor's own load. */
import { expect, it, test } from 'vitest';
import type { GpuReading, HostReadings } from '../../control/readings.ts';
import { growthFindings } from '../../launcher/doctor/growth.ts';
import { wellHost, wellInterface, wellPci, wellPort } from '../rig/readings.ts';

function grown(after: Partial<HostReadings>) {
  const found = growthFindings([{ name: 'a', readings: wellHost() }], [{ name: 'a', counters: wellHost(after) }]);
  return found.filter(({ answer }) => answer !== 'ok');
}

function gpu(changes: Partial<GpuReading>): Partial<HostReadings> {
  const { gpus } = wellHost();
  return {
    gpus: { ...gpus, devices: (gpus.devices ?? []).map((one) => ({ ...one, ...(one.index === 1 ? changes : {}) })) },
  };
}

it('counters that stand still are well', () => {
  expect(grown({})).toEqual([]);
  expect(growthFindings([{ name: 'a', readings: wellHost() }], [{ name: 'a', counters: wellHost() }]).length).toBe(7);
});

const rows: readonly (readonly [
  what: string,
  after: Partial<HostReadings>,
  check: string,
  answer: string,
  message: string,
])[] = [
  [
    'corrected errors of main memory',
    { memory: { ...wellHost().memory, correctedErrors: 2 } },
    'memory.growing-errors',
    'warn',
    'main memory corrected 2 errors under load',
  ],
  [
    'uncorrected errors of main memory',
    { memory: { ...wellHost().memory, correctedErrors: 2, uncorrectedErrors: 1 } },
    'memory.growing-errors',
    'fail',
    'main memory had 1 uncorrected errors under load',
  ],
  [
    'errors of a card',
    { interfaces: [wellInterface({ receiveErrors: 1 })] },
    'network.errors',
    'warn',
    '1 errors under load',
  ],
  [
    'a lost link',
    { interfaces: [wellInterface({ carrierChanges: 3 })] },
    'network.errors',
    'fail',
    'its link was lost under load',
  ],
  [
    'dropped packets',
    { interfaces: [wellInterface({ sendDrops: 101 })] },
    'network.errors',
    'note',
    '101 packets dropped under load',
  ],
  [
    'symbol errors',
    { infiniband: [wellPort({ counters: { symbol_error: 100, link_downed: 1 } })] },
    'infiniband.growing-errors',
    'warn',
    'errors grew under load: symbol_error by 100',
  ],
  [
    'many symbol errors',
    { infiniband: [wellPort({ counters: { symbol_error: 101, link_downed: 1 } })] },
    'infiniband.growing-errors',
    'fail',
    'errors grew under load: symbol_error by 101',
  ],
  [
    'a port that went down',
    { infiniband: [wellPort({ counters: { symbol_error: 0, link_downed: 2 } })] },
    'infiniband.growing-errors',
    'fail',
    'its link was lost under load',
  ],
  [
    'lost packets of RoCE',
    { infiniband: [wellPort({ counters: { symbol_error: 0, link_downed: 1, out_of_sequence: 4 } })] },
    'infiniband.growing-errors',
    'warn',
    'packets were lost under load: out_of_sequence by 4',
  ],
  [
    'a port that waits to send',
    {
      infiniband: [
        wellPort({
          counters: { symbol_error: 0, link_downed: 1, port_xmit_wait: 2 ** 20, port_xmit_data: 3 * 2 ** 20 },
        }),
      ],
    },
    'infiniband.congestion',
    'note',
    'it waited 25 % of the time to send under load',
  ],
  [
    'marks that nobody reports',
    {
      infiniband: [
        wellPort({
          linkLayer: 'Ethernet',
          counters: { symbol_error: 0, link_downed: 1, np_ecn_marked_roce_packets: 9 },
        }),
      ],
    },
    'roce.congestion',
    'warn',
    'it reported none of 9 packets under load that switches had marked for congestion',
  ],
  [
    'reports that nobody follows',
    {
      infiniband: [
        wellPort({ linkLayer: 'Ethernet', counters: { symbol_error: 0, link_downed: 1, rp_cnp_ignored: 4 } }),
      ],
    },
    'roce.congestion',
    'warn',
    'it ignored 4 reports of congestion under load',
  ],
  [
    'dropped packets of a port',
    { infiniband: [wellPort({ counters: { symbol_error: 0, link_downed: 1, port_xmit_discards: 2 } })] },
    'infiniband.growing-errors',
    'warn',
    'packets were dropped under load: port_xmit_discards by 2',
  ],
  [
    'uncorrected errors of PCIe',
    { pci: [wellPci({ nonfatalErrors: 1, correctableErrors: 5 })] },
    'pci.growing-errors',
    'fail',
    'PCIe had 1 errors under load that it could not correct',
  ],
  [
    'errors of a GPU',
    gpu({ uncorrectedErrors: 1 }),
    'gpu.growing-errors',
    'fail',
    'its memory had 1 uncorrected errors under load',
  ],
  [
    'replaced rows',
    gpu({ remappedRows: 2 }),
    'gpu.growing-errors',
    'warn',
    '2 rows of its memory were replaced under load',
  ],
  [
    'heat',
    gpu({ throttledMicroseconds: 2.5e6 }),
    'gpu.growing-errors',
    'fail',
    'heat or power lowered its clocks for 2.5 s under load',
  ],
  [
    'packets sent again',
    gpu({ pcieReplays: 11 }),
    'gpu.growing-errors',
    'warn',
    'PCIe sent 11 packets again under load',
  ],
  [
    'errors of NVLinks',
    gpu({ nvlinkErrors: 100 }),
    'nvlink.growing-errors',
    'warn',
    'its NVLinks had 100 errors under load',
  ],
  [
    'many errors of NVLinks',
    gpu({ nvlinkErrors: 101 }),
    'nvlink.growing-errors',
    'fail',
    'its NVLinks had 101 errors under load',
  ],
  [
    'corrected errors of PCIe',
    { pci: [wellPci({ correctableErrors: 1 })] },
    'pci.growing-errors',
    'warn',
    'PCIe corrected 1 errors under load',
  ],
];
test.each(rows)('doctor names %s', (_what, after, check, answer, message) => {
  expect(grown(after)).toMatchObject([{ check, answer, host: 'a', message }]);
});

it('a host that was not read before says nothing', () => {
  expect(
    growthFindings([], [{ name: 'a', counters: wellHost({ interfaces: [wellInterface({ receiveErrors: 1 })] }) }]),
  ).toEqual([]);
});
