/** The way of a PCI device up to its processor. */
import { describe, expect, test } from 'vitest';
import { pciAttributes } from '../../worker/topology/pci.ts';
import { switchesAbove, sysfsAddress, walkUp } from '../../worker/topology/walk.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

const bus = (number: number) => `0000:${number}:00.0`;

describe('a device below switches', () => {
  test('walkUp keeps one bridge per switch and finds the NUMA node', () => {
    const path = `sys/devices/pci0000:00/${[10, 11, 12, 13, 14, 15, 16, 17].map(bus).join('/')}`;
    using sysfs = new FakeSysfs();
    sysfs.addPci(path, { numa_node: '1' });
    const { devices, numa } = walkUp(sysfs.root, bus(17));
    expect(devices.map(({ busId }) => busId)).toEqual([bus(17), bus(15), bus(13), bus(11)]);
    expect(numa).toBe('1');
  });

  test.each<[string, string[]]>([
    ['pci0000:00/0000:00:06.0', []],
    ['pci0000:00/0000:00:01.0/0000:01:00.0', []], // a root port alone
    ['pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:08.0/0000:03:00.0', ['0000:01:00.0']],
    ['pci0000:00/0000:01:00.0/0000:02:08.0/0000:03:00.0', ['0000:01:00.0']],
    ['pci10000:00/10000:00:01.0/10000:01:00.0/10000:02:00.0/10000:03:00.0', ['10000:01:00.0']],
    ['platform/a.pcie/pci0000:00/0000:00:00.0/0000:01:00.0', []],
    ['pci0000:00/virtio2', []],
  ])('switchesAbove finds the switches above %s', (path, switches) => {
    expect(switchesAbove(`sys/devices/${path}`).map((one) => one.split('/').at(-1))).toEqual(switches);
  });

  test('walkUp returns an unknown device without a path', () => {
    using sysfs = new FakeSysfs();
    expect(walkUp(sysfs.root, '00000000:1B:00.0')).toEqual({
      devices: [{ busId: '0000:1b:00.0', path: null }],
      numa: '-1',
    });
  });
});

test.each([
  ['00000000:1B:00.0', '0000:1b:00.0'],
  ['0000:1b:00.0', '0000:1b:00.0'],
  ['00010000:1b:00.0', '10000:1b:00.0'],
  ['00000008:01:00.0', '0008:01:00.0'],
  ['FFFFFFF:FFFF:FF', 'fffffff:ffff:ff'],
])('sysfsAddress converts %s', (address, expected) => {
  expect(sysfsAddress(address)).toBe(expected);
});

type Files = Readonly<Record<string, string>>;
const link = (speed: string, width: string): Files => ({ max_link_speed: speed, max_link_width: width });

describe('speed and width of a link', () => {
  const speeds = { slow: '8.0 GT/s PCIe', fast: '32.0 GT/s PCIe' };

  test.each<[string, Files | null, Files, [string, string]]>([
    ['a slower port', link(speeds.slow, '8'), link(speeds.fast, '16'), [speeds.slow, '8']],
    ['a slower device', link(speeds.fast, '16'), link(speeds.slow, '4'), [speeds.slow, '4']],
    ['no port', null, link(speeds.fast, '16'), [speeds.fast, '0']],
    ['a port that says nothing', {}, link(speeds.fast, '16'), [speeds.fast, '0']],
    ['a port that does not know', link('Unknown', '0'), link('16 GT/s', '16'), ['16 GT/s', '0']],
    ['neither known', {}, {}, ['', '0']],
  ])('pciAttributes takes the smaller speed and width with %s', (_name, port, device, [speed, width]) => {
    using sysfs = new FakeSysfs();
    const above = port === null ? 'sys/devices/pci0000:00' : 'sys/devices/pci0000:00/0000:00:01.0';
    if (port !== null) sysfs.addPci(above, port);
    sysfs.addPci(`${above}/0000:01:00.0`, { class: '0x030200', ...device });
    const place = { busId: '0000:01:00.0', path: `${above}/0000:01:00.0` };
    expect(pciAttributes(sysfs.root, place, '')).toEqual([
      ['busid', '0000:01:00.0'],
      ['class', '0x030200'],
      ['link_speed', speed],
      ['link_width', width],
    ]);
  });
});
