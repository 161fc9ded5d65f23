/** Logins, clocks, RoCE, IMEX, cards and data, read from trees and tools as real machines have them. */
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { clockDistance, stepBetween } from '../../worker/readings/clock.ts';
import { readData } from '../../worker/readings/data.ts';
import { readEnvironment } from '../../worker/readings/environment.ts';
import { gpusInXml } from '../../worker/readings/gpu-xml.ts';
import { readImex } from '../../worker/readings/imex.ts';
import { readCgroup, readKernelSettings } from '../../worker/readings/limits.ts';
import { readLogin } from '../../worker/readings/login.ts';
import { readMemory } from '../../worker/readings/memory.ts';
import { readInfiniband } from '../../worker/readings/network.ts';
import { readPci } from '../../worker/readings/pci.ts';
import { flowControlOfDcb, flowControlOfMlnxQos, pausedIn, readRoce } from '../../worker/readings/roce.ts';
import { writeTree } from '../rig/recorded-host.ts';
import { wellHost, wellPort } from '../rig/readings.ts';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'ncclrun-details-'));
});
afterEach(() => {
  vi.unstubAllEnvs();
  rmSync(root, { recursive: true });
});

/** Tools that come first in the PATH, each with what it says. */
function tools(said: Readonly<Record<string, string>>): void {
  for (const [name, text] of Object.entries(said)) {
    writeTree(root, { [`bin/${name}`]: `#!/bin/sh\ncat <<'END'\n${text}\nEND` });
    chmodSync(join(root, 'bin', name), 0o755);
  }
  vi.stubEnv('PATH', `${join(root, 'bin')}:/usr/bin:/bin`);
}

const qos = `DCBX mode: OS controlled
Priority trust state: dscp
Cable len: 7
PFC configuration:
\tpriority    0   1   2   3   4   5   6   7
\tenabled     0   0   0   1   0   0   0   0
tc: 0 ratelimit: unlimited, tsa: vendor`;

describe('a RoCE port', () => {
  const port = 'sys/class/infiniband/mlx5_0/ports/1';

  it('flow control, pauses and ECN of its interface are read', async () => {
    tools({ mlnx_qos: qos, ethtool: 'NIC statistics:\n     rx_prio3_pause: 12\n     tx_prio0_pause: 0' });
    writeTree(root, {
      [`${port}/gid_attrs/ndevs/0`]: 'eth2.5',
      [`${port}/gid_attrs/ndevs/1`]: 'eth2',
      'sys/class/net/eth2/mtu': '9000',
      'sys/class/net/eth2/upper_eth2.5/mtu': '9000',
      'sys/class/net/eth2/ecn/roce_np/enable/3': '1',
      'sys/class/net/eth2/ecn/roce_np/enable/4': '0',
      'sys/class/net/eth2/ecn/roce_rp/enable/3': '0',
    });
    const ports = [wellPort({ linkLayer: 'Ethernet' }), wellPort({ card: 'mlx5_1' })];
    expect(await readRoce(root, ports)).toEqual([
      {
        card: 'mlx5_0',
        port: 1,
        interface: 'eth2',
        mtu: 9000,
        trust: 'dscp',
        hasVlan: true,
        pausing: [3],
        paused: [3],
        notifying: [3],
        reacting: [],
      },
    ]);
  });

  it('a port is left out whose interface nobody names, and a tool that is not there tells nothing', async () => {
    vi.stubEnv('PATH', root);
    const ports = [wellPort({ linkLayer: 'Ethernet' })];
    expect(await readRoce(root, ports)).toEqual([]);
    writeTree(root, { [`${port}/gid_attrs/ndevs/0`]: 'eth0' });
    expect(await readRoce(root, ports)).toMatchObject([
      { interface: 'eth0', mtu: null, trust: null, pausing: null, paused: [], notifying: null, reacting: null },
    ]);
  });

  it('each tool says it in its own words', () => {
    expect(flowControlOfMlnxQos(qos)).toEqual({ trust: 'dscp', pausing: [3] });
    expect(flowControlOfMlnxQos('nonsense')).toEqual({ trust: null, pausing: null });
    const dcb = 'pfc-cap 8 macsec-bypass off delay 0\nprio-pfc 0:off 1:off 2:off 3:on 4:off 5:off 6:on 7:off';
    expect(flowControlOfDcb(dcb, 'dscp-prio AF31:3')).toEqual({ trust: 'dscp', pausing: [3, 6] });
    expect(flowControlOfDcb(dcb, '')).toEqual({ trust: 'pcp', pausing: [3, 6] });
    expect(flowControlOfDcb('', null)).toEqual({ trust: null, pausing: null });
    expect(pausedIn('     tx_priority_5_xoff.nic: 7\n     rx_prio1_pause: 2\n     rx_prio1_pause_duration: 9')).toEqual(
      [1, 5],
    );
  });

  it('places of its addresses and its card on the bus are read', () => {
    writeTree(
      root,
      {
        [`${port}/link_layer`]: 'Ethernet',
        [`${port}/gid_attrs/types/0`]: 'RoCE v2',
        [`${port}/gids/0`]: 'fe80:0000:0000:0000:0ac0:ebff:fe00:0001',
        [`${port}/gid_attrs/types/3`]: 'RoCE v2',
        [`${port}/gids/3`]: '0000:0000:0000:0000:0000:ffff:0a00:0001',
      },
      { 'sys/class/infiniband/mlx5_0/device': 'sys/devices/pci0000:15/0000:18:00.0' },
    );
    expect(readInfiniband(root)).toMatchObject([{ address: '0000:18:00.0', roceIndices: [3] }]);
  });
});

const xml = (cluster: string) =>
  `<gpu id="1"><fabric><state>Completed</state><cliqueId>32766</cliqueId><clusterUuid>${cluster}</clusterUuid></fabric></gpu>`;

describe('NVLink between hosts', () => {
  const domain = { cluster: '5b1e6a2c-0000-4000-8000-000000000001', clique: '32766' };
  const { gpus } = wellHost();
  const devices = (gpus.devices ?? []).map((gpu) => ({ ...gpu, domain }));

  it('channels and the service are read where the fabric has several hosts', async () => {
    tools({ 'nvidia-imex-ctl': 'READY' });
    writeTree(root, { 'dev/nvidia-caps-imex-channels/channel0': '', 'dev/nvidia-caps-imex-channels/other': '' });
    expect(await readImex(root, { ...gpus, devices })).toEqual({ channels: 1, usableChannels: 1, state: 'READY' });
    expect(await readImex(root, gpus)).toEqual({ channels: 1, usableChannels: 1, state: null });
  });

  it('a fabric within one host has an identifier of zeros', () => {
    expect(gpusInXml(xml('00000000-0000-0000-0000-000000000000'))[0]?.domain).toBeNull();
    expect(gpusInXml(xml('N/A'))[0]?.domain).toBeNull();
    expect(gpusInXml(xml(domain.cluster))[0]?.domain).toEqual(domain);
  });
});

describe('the login', () => {
  it('what a shell writes before its command is counted', async () => {
    writeTree(root, { shell: '#!/bin/sh\necho\necho "we\u001blcome"\n' });
    const shell = join(root, 'shell');
    chmodSync(shell, 0o755);
    expect(await readLogin({ shell, home: root })).toEqual({ shell, bytes: 9, line: 'we?lcome' });
    expect(await readLogin({ shell: '/bin/sh', home: root })).toEqual({ shell: '/bin/sh', bytes: 0, line: '' });
  });

  it('a shell that starts no command says nothing', async () => {
    expect(await readLogin({ shell: '/bin/false', home: root })).toBeNull();
    expect(await readLogin({ shell: '', home: root })).toBeNull();
    expect(await readLogin(null)).toBeNull();
  });

  it('the shell gets the variable by which bash knows sshd', async () => {
    writeTree(root, { shell: '#!/bin/sh\necho "$SSH_CLIENT $HOME"' });
    const shell = join(root, 'shell');
    chmodSync(shell, 0o755);
    expect((await readLogin({ shell, home: root }))?.line).toBe(`127.0.0.1 1 22 ${root}`);
  });
});

describe('the clock', () => {
  it('a step is what is more than the readings may be wrong', () => {
    expect(stepBetween({ ms: 10, withinMs: 0.6 }, { ms: 11, withinMs: 0.6 })).toBe(0);
    expect(stepBetween({ ms: 10, withinMs: 0.6 }, { ms: 7, withinMs: 0.6 })).toBe(-3);
  });

  it('the reading that took the shortest time counts', () => {
    const times = [0, 9, 10, 11, 12, 20, 21, 40, 41, 50];
    expect(
      clockDistance(
        () => 100,
        () => times.shift() ?? 0,
      ),
    ).toEqual({ ms: 100.5 - 10.5, withinMs: 1 });
  });
});

describe('the data', () => {
  it('a file and a directory of files are read', async () => {
    writeTree(root, { 'data/a b': Buffer.alloc(2 ** 20), 'data/c/d': Buffer.alloc(10), 'data/none': Buffer.alloc(0) });
    expect(await readData(join(root, 'data'))).toMatchObject({ bytes: 2 ** 20 + 10, problem: null });
    const { bytes, seconds } = await readData(join(root, 'data/a b'));
    expect(bytes).toBe(2 ** 20);
    expect(seconds).toBeGreaterThan(0);
  });

  it('a path without files is a problem', async () => {
    expect(await readData(join(root, 'gone'))).toEqual({
      path: join(root, 'gone'),
      bytes: 0,
      seconds: 0,
      problem: 'there is no file that can be read',
    });
  });
});

describe('limits and memory', () => {
  it('memory of the control group that is in use is read, of both versions', () => {
    writeTree(root, { 'sys/fs/cgroup/memory.stat': 'anon 4096\nfile 99999' });
    expect(readCgroup(root).memoryUsedBytes).toBe(4096);
    rmSync(join(root, 'sys'), { recursive: true });
    writeTree(root, { 'sys/fs/cgroup/memory/memory.stat': 'cache 1\ntotal_rss 8192' });
    expect(readCgroup(root).memoryUsedBytes).toBe(8192);
  });

  it('reserved huge pages of all sizes are added up', () => {
    expect(readMemory(root).hugePageBytes).toBeNull();
    writeTree(root, {
      'sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages': '3',
      'sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages': '1',
    });
    expect(readMemory(root).hugePageBytes).toBe(6 * 2 ** 20 + 2 ** 30);
  });

  it('the place of core files is looked for, unless the host of a container has it', () => {
    const pattern = 'proc/sys/kernel/core_pattern';
    writeTree(root, { [pattern]: '|/usr/lib/dump %P %u' });
    expect(readKernelSettings(root)).toMatchObject({ corePattern: '|/usr/lib/dump %P %u', corePlaceExists: false });
    writeTree(root, { 'usr/lib/dump': '' });
    expect(readKernelSettings(root)).toMatchObject({ corePlaceExists: true });
    for (const [text, exists] of [
      ['core', true],
      ['/var/cores/core.%p', false],
      ['/var/%u/core', true],
    ] as const) {
      writeTree(root, { [pattern]: text });
      expect(readKernelSettings(root).corePlaceExists).toBe(exists);
    }
    writeTree(root, { '.dockerenv': '' });
    expect(readKernelSettings(root)).toMatchObject({ corePattern: null, corePlaceExists: null });
  });

  it('settings of network cards count as the kernel combines them with those of all', () => {
    const settings = 'proc/sys/net/ipv4/conf';
    writeTree(root, {
      [`${settings}/all/rp_filter`]: '0',
      [`${settings}/all/arp_ignore`]: '0',
      [`${settings}/eth0/rp_filter`]: '1',
      [`${settings}/eth0/arp_ignore`]: '1',
      [`${settings}/docker0/rp_filter`]: '2',
      [`${settings}/docker0/arp_ignore`]: '0',
      'sys/class/net/eth0/device/vendor': '0x15b3',
    });
    expect(readKernelSettings(root)).toMatchObject({ reversePathFilter: 1, arpIgnore: 1 });
  });
});

it('the version of NCCL is in the name that its link leads to', () => {
  expect(readEnvironment(root, {}).libraryVersion).toBeNull();
  writeTree(root, { 'usr/lib64/libnccl.so.2.27.3': '' }, {});
  writeTree(root, { 'own/libnccl.so.2': '' });
  expect(readEnvironment(root, { LD_LIBRARY_PATH: join(root, 'own') })).toMatchObject({
    library: join(root, 'own/libnccl.so.2'),
    libraryVersion: null,
  });
  writeTree(root, {}, { 'usr/lib64/libnccl.so.2': 'else/libnccl.so.2.27.3' });
  expect(readEnvironment(root, {}).libraryVersion).toBe('2.27.3');
});

it('bridges and packets of a card are read', () => {
  const config = Buffer.alloc(256);
  config[0x34] = 0x40;
  config[0x40] = 0x10;
  config.writeUInt16LE(1 << 5, 0x48);
  const card = 'sys/devices/pci0000:15/0000:15:01.0/0000:18:00.0';
  writeTree(
    root,
    { [`${card}/class`]: '0x020700', [`${card}/vendor`]: '0x15b3', [`${card}/config`]: config },
    { 'sys/bus/pci/devices/0000:18:00.0': card },
  );
  expect(readPci(root)).toMatchObject([{ payloadBytes: 256, bridges: ['0000:15:01.0'] }]);
});
