/** What an agent reads of its host: facts for its hello, kills for lack of memory, and holders of GPU memory. */
import { spawn } from 'node:child_process';
import { networkInterfaces, userInfo } from 'node:os';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { askNvml, memoryOf, withoutJob } from '../../worker/agent/gpu-memory.ts';
import { hostFacts } from '../../worker/agent/host-facts.ts';
import { MemoryKills } from '../../worker/agent/memory-kills.ts';
import { preflightFacts } from '../../worker/agent/preflight.ts';
import type { NvmlMemory } from '../../worker/engine/native.ts';
import { FakeSysfs } from '../rig/sysfs.ts';

const limits = (locked: string, files = '1024'): string =>
  [
    'Limit                     Soft Limit           Hard Limit           Units     ',
    `Max locked memory         ${locked}            1                    bytes     `,
    `Max open files            ${files}             1048576              files     `,
  ].join('\n');

describe('what hosts should have in common', () => {
  test('a host has its driver, CUDA, ports, limits and shared memory', () => {
    using host = new FakeSysfs();
    host.write('proc/self/limits', limits('unlimited'));
    host.write('sys/module/nvidia/version', '580.65.06');
    host.write(
      'usr/local/cuda/version.json',
      '{"cuda": {"name": "CUDA SDK",\n"version": "13.0.1"}, "other": {"version": "2"}}',
    );
    mkdirSync(join(host.root, 'dev/shm'), { recursive: true });
    for (const [device, port, state] of [
      ['mlx5_1', 1, '4: ACTIVE'],
      ['mlx5_0', 2, '1: DOWN'],
      ['mlx5_0', 1, '4: ACTIVE'],
    ])
      host.write(`sys/class/infiniband/${device}/ports/${port}/state`, String(state));
    expect(preflightFacts(host.root)).toEqual({
      'NVIDIA driver': '580.65.06',
      CUDA: '13.0.1',
      'InfiniBand ports': '2 active, mlx5_0 port 2 down',
      'lockable memory': 'unlimited',
      'open files': '1024',
      '/dev/shm': expect.stringMatching(/^[\d.]+ [KMGT]iB$/),
    });
  });

  test('a host without any of it has no shared memory', () => {
    using host = new FakeSysfs();
    expect(preflightFacts(host.root)).toEqual({ '/dev/shm': 'none' });
  });

  test.each([
    ['0', '0 bytes'],
    ['1023', '1000 bytes'],
    ['1024', '1 KiB'],
    ['1048575', '1000 KiB'],
    ['1048576', '1 MiB'],
    ['67108864', '64 MiB'],
    ['1610612736', '1.5 GiB'],
    ['1099511627776', '1 TiB'],
    ['1125899906842624', '1000 TiB'],
  ])('a limit of %s bytes reads %s', (locked, text) => {
    using host = new FakeSysfs();
    host.write('proc/self/limits', limits(locked));
    expect(preflightFacts(host.root)['lockable memory']).toBe(text);
  });
});

const grows = (host: FakeSysfs, file: string, more = ''): void => {
  host.write(file, `${more}oom_kill 3`);
  const kills = new MemoryKills(host.root);
  expect(kills.another()).toBe(false);
  host.write(file, `${more}oom_kill 5`);
  expect([kills.another(), kills.another(), kills.another()]).toEqual([true, true, false]);
};

describe('kills for lack of memory', () => {
  test('the control group of version 2 counts them', () => {
    using host = new FakeSysfs();
    host.write('proc/self/cgroup', '0::/user/job');
    host.write('proc/vmstat', 'oom_kill 100');
    grows(host, 'sys/fs/cgroup/user/job/memory.events', 'oom 9\n');
  });

  test('the memory group of version 1 counts them', () => {
    using host = new FakeSysfs();
    host.write('proc/self/cgroup', '5:cpu,cpuacct:/c\n4:hugetlb,memory:/m\n0::/u');
    host.write('sys/fs/cgroup/memory/c/memory.oom_control', 'oom_kill 100');
    host.write('proc/vmstat', 'oom_kill 100');
    grows(host, 'sys/fs/cgroup/memory/m/memory.oom_control', 'oom_kill_disable 0\n');
  });

  test('the machine counts them where the group does not', () => {
    using host = new FakeSysfs();
    host.write('proc/self/cgroup', '0::/');
    host.write('sys/fs/cgroup/memory.events', 'oom_kill many');
    grows(host, 'proc/vmstat');
  });

  test('there are none where nothing counts', () => {
    using host = new FakeSysfs();
    expect(new MemoryKills(host.root).another()).toBe(false);
  });
});

const gpu = (busId: string, processes: NvmlMemory['processes']): NvmlMemory => ({
  busId,
  total: 100,
  free: 10,
  processes,
});

describe('the memory of GPUs', () => {
  const nobody = 2 ** 22 + 1;

  test('NVML without an answer knows of no memory', async () => {
    const memory = gpu('00000000:1B:00.0', []);
    expect(await askNvml({ gpuMemory: async () => 'no NVML' })).toEqual([]);
    expect(await askNvml({ gpuMemory: async () => [memory] })).toEqual([memory]);
  });

  test('the holders of a GPU come by their size, with program and user where they are known', () => {
    const answer = [
      gpu('00000000:1B:00.0', [
        { pid: nobody, used: null },
        { pid: nobody, used: 1 },
        { pid: process.pid, used: 60 },
      ]),
      gpu('00000000:1C:00.0', []),
    ];
    const wanted = [
      { index: 2, address: '0000:1b:00.0' },
      { index: 2, address: '0000:1b:00.0' },
      { index: 3, address: null },
      { index: 4, address: '0000:1d:00.0' },
    ];
    const [found, ...others] = memoryOf(answer, wanted);
    expect(others).toEqual([]);
    expect(found).toMatchObject({ gpu: 2, total: 100, free: 10 });
    expect(found?.holders).toEqual([
      { pid: process.pid, program: expect.stringMatching(/./u), user: userInfo().username, used: 60 },
      { pid: nobody, program: null, user: null, used: 1 },
      { pid: nobody, program: null, user: null, used: null },
    ]);
  });

  test('the memory of other jobs is not free', () => {
    const processes = [
      { pid: process.pid, used: 60 },
      { pid: nobody, used: 5 },
    ];
    const answer = [gpu('00000000:1B:00.0', processes)];
    expect(withoutJob(answer, 'no such job')).toEqual(answer);
    const [zero, unknown] = [
      { pid: nobody, used: 0 },
      { pid: nobody, used: null },
    ];
    const [sorted] = memoryOf([gpu('00000000:1B:00.0', [zero, unknown])], [{ index: 0, address: '0000:1b:00.0' }]);
    expect(sorted?.holders.map(({ used }) => used)).toEqual([0, null]);
  });

  test('the memory of the ranks of the job counts as free, also where NVML does not tell it', () => {
    const rank = spawn('cat', { env: { NCCLRUN_JOB_ID: 'job-of-a-test' }, stdio: ['pipe', 'ignore', 'ignore'] });
    const [own, unknown] = [
      { pid: rank.pid ?? nobody, used: 60 },
      { pid: rank.pid ?? nobody, used: null },
    ];
    const others = [{ pid: nobody, used: 5 }];
    const [found] = withoutJob([gpu('00000000:1B:00.0', [own, unknown, ...others])], 'job-of-a-test');
    rank.stdin.end();
    expect(found).toEqual({ busId: '00000000:1B:00.0', total: 100, free: 70, processes: others });
  });
});

const isV6 = (address: string): boolean => address.includes(':');

describe('the facts of a host', () => {
  afterEach(() => {
    vi.unstubAllEnvs();
  });

  test('a host that is alone has no addresses and is compared with none', () => {
    vi.stubEnv('SSH_CONNECTION', '192.0.2.1 5000 203.0.113.77 22');
    expect(hostFacts(true, false)).toMatchObject({
      addresses: [],
      nics: [],
      preflight: {},
      topology: null,
      launcherAddress: '192.0.2.1',
    });
    expect(hostFacts(true, true).topology?.cores.length).toBeGreaterThan(0);
  });

  test.each(['', '192.0.2.1', '192.0.2.1 5000'])('SSH_CONNECTION=%j names no launcher', (connection) => {
    vi.stubEnv('SSH_CONNECTION', connection);
    expect(hostFacts(true, false).launcherAddress).toBeNull();
  });

  test('the address by which ssh came leads, unless it is an address of this host that no interface offers', () => {
    vi.stubEnv('SSH_CONNECTION', '192.0.2.1 5000 203.0.113.77 22');
    const { addresses, nics, preflight } = hostFacts(false, false);
    const own = nics.map(({ address }) => address);
    const inOrder = [...own.filter((one) => !isV6(one)), ...own.filter(isV6)];
    expect(addresses).toEqual(['203.0.113.77', ...new Set(inOrder)]);
    expect(Object.keys(preflight)).toContain('open files');
    const loopback = Object.values(networkInterfaces()).flatMap((all) => all?.filter(({ internal }) => internal) ?? []);
    for (const { address } of loopback.filter((one) => !own.includes(one.address))) {
      vi.stubEnv('SSH_CONNECTION', `192.0.2.1 5000 ${address} 22`);
      expect(hostFacts(false, false).addresses).toEqual([...new Set(inOrder)]);
    }
    for (const address of own) {
      vi.stubEnv('SSH_CONNECTION', `192.0.2.1 5000 ${address} 22`);
      expect(hostFacts(false, false).addresses).toEqual([...new Set([address, ...inOrder])]);
    }
  });
});
