import type { NetworkInterfaceInfo } from 'node:os';
import { describe, expect, test } from 'vitest';
import { findInterfaces } from '../../worker/topology/interfaces.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

/** `10.0.0.1/24`, `fe80::1/64%2`. */
function address(text: string, internal: boolean): NetworkInterfaceInfo {
  const [, numeric = '', prefix = '', scope = '0'] = /^([^/]+)\/(\d+)(?:%(\d+))?$/u.exec(text) ?? [];
  const common = { address: numeric, cidr: `${numeric}/${prefix}`, netmask: '', mac: '', internal };
  return numeric.includes(':') ? { ...common, family: 'IPv6', scopeid: Number(scope) } : { ...common, family: 'IPv4' };
}

function host(interfaces: Readonly<Record<string, readonly string[]>>): NodeJS.Dict<NetworkInterfaceInfo[]> {
  const named = Object.entries(interfaces);
  return Object.fromEntries(named.map(([name, its]) => [name, its.map((one) => address(one, name === 'lo'))]));
}

const usual = host({
  lo: ['127.0.0.1/8', '::1/128'],
  docker0: ['172.17.0.1/16'],
  virbr0: ['192.168.122.1/24'],
  eth0: ['10.0.0.1/24', 'fd00::1/64', 'fe80::1/64%2'],
  eth1: ['10.1.0.1/24', 'fe80::2/64%3'],
});

const chosen = (
  names: string | undefined,
  family?: string,
  listed: NodeJS.Dict<NetworkInterfaceInfo[]> = usual,
): string[] => findInterfaces({ names, family }, '/nowhere', listed).nics.map((nic) => `${nic.name} ${nic.address}`);

describe('the interfaces of a host', () => {
  test.each([
    [undefined, undefined, ['eth0 10.0.0.1', 'eth0 fd00::1', 'eth1 10.1.0.1']],
    [undefined, 'AF_INET', ['eth0 10.0.0.1', 'eth1 10.1.0.1']],
    [undefined, 'AF_INET6', ['eth0 fd00::1']],
    ['eth1', undefined, ['eth1 10.1.0.1']],
    ['eth1', 'AF_INET6', ['eth1 fe80::2%eth1']],
    ['=eth', undefined, []],
    ['=eth0,docker0', 'AF_INET', ['docker0 172.17.0.1', 'eth0 10.0.0.1']],
    ['^eth', 'AF_INET', ['docker0 172.17.0.1', 'virbr0 192.168.122.1']],
    ['^=eth0', 'AF_INET', ['docker0 172.17.0.1', 'virbr0 192.168.122.1', 'eth1 10.1.0.1']],
    ['lo', 'AF_INET', ['lo 127.0.0.1']],
  ])('NCCL_SOCKET_IFNAME=%s and NCCL_SOCKET_FAMILY=%s choose %j', (names, family, expected) => {
    expect(chosen(names, family)).toEqual(expected);
  });

  test.each([
    [{ lo: ['127.0.0.1/8'], docker0: ['172.17.0.1/16'], virbr0: ['192.168.122.1/24'] }, ['docker0 172.17.0.1']],
    [{ lo: ['127.0.0.1/8'], virbr0: ['192.168.122.1/24'] }, ['lo 127.0.0.1']],
    [{ virbr0: ['192.168.122.1/24'] }, ['virbr0 192.168.122.1']],
    [{ lo: ['127.0.0.1/8'], eth0: ['fe80::1/64%2'] }, ['eth0 fe80::1%eth0']],
    [{}, []],
  ])('the default among %j takes %j', (interfaces, expected) => {
    expect(chosen(undefined, undefined, host(interfaces))).toEqual(expected);
  });

  test.each([
    ['ib7', undefined, /^NCCL_SOCKET_IFNAME=ib7 names no .*; it has lo \(127\.0\.0\.1, ::1\), docker0 \(.*, eth1 \(/u],
    ['docker', 'AF_INET6', /^NCCL_SOCKET_FAMILY=AF_INET6: no interface that may be used has such an address; /u],
    ['eth', 'inet', /^NCCL_SOCKET_FAMILY=inet: AF_INET or AF_INET6 is wanted$/u],
  ])('NCCL_SOCKET_IFNAME=%s with NCCL_SOCKET_FAMILY=%s is a problem', (names, family, problem) => {
    expect(findInterfaces({ names, family }, '/nowhere', usual).problem).toMatch(problem);
  });

  test('wishes that can be met, or none, are no problem', () => {
    for (const names of ['eth', '^eth', '', undefined])
      expect(findInterfaces({ names, family: undefined }, '/nowhere', usual).problem).toBeNull();
    expect(findInterfaces({ names: undefined, family: undefined }, '/nowhere', {}).problem).toBeNull();
  });

  test('an interface has its speed, device and subnet', () => {
    using sysfs = new FakeSysfs();
    const card = 'sys/devices/pci0000:00/0000:00:03.0';
    sysfs.addPci(card, { class: '0x020000' });
    sysfs.link('sys/class/net/eth0/device', card);
    sysfs.write('sys/class/net/eth0/speed', '25000');
    sysfs.write('sys/class/net/eth1/speed', '-1');
    const { nics } = findInterfaces({ names: 'eth', family: 'AF_INET' }, sysfs.root, usual);
    expect(nics).toEqual([
      {
        name: 'eth0',
        address: '10.0.0.1',
        prefixLength: 24,
        speedMbps: 25_000,
        pciPath: expect.stringContaining('0000:00:03.0'),
        isVirtual: false,
        isNamed: true,
      },
      {
        name: 'eth1',
        address: '10.1.0.1',
        prefixLength: 24,
        speedMbps: 0,
        pciPath: null,
        isVirtual: true,
        isNamed: true,
      },
    ]);
  });
});
