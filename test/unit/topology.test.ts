/** What a host says of itself, from files of /proc, /sys and /dev. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { visibleGpus } from '../../worker/topology/gpus.ts';
import { hostTopology } from '../../worker/topology/host-topology.ts';
import { parseCpuList } from '../../worker/topology/system-files.ts';

// The hosts of these tests have GPUs, which the suite would hide.
beforeEach(() => void vi.stubEnv('CUDA_VISIBLE_DEVICES', undefined));
afterEach(() => void vi.unstubAllEnvs());

const roots: string[] = [];
afterAll(() => roots.forEach((root) => rmSync(root, { recursive: true })));

function rootWith(files: Readonly<Record<string, string>>): string {
  const root = mkdtempSync(join(tmpdir(), 'ncclrun-topology-'));
  roots.push(root);
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    writeFileSync(join(root, path), `${content}\n`);
  }
  return root;
}

const cpu = 'sys/devices/system/cpu';
const node = 'sys/devices/system/node';
const gpu = (address: string) => `proc/driver/nvidia/gpus/${address}/information`;
const pci = (address: string) => `sys/bus/pci/devices/${address}`;

/** Two NUMA nodes of two cores with two threads each: 0+4, 1+5 on node 0, 2+6, 3+7 on node 1. */
const twoNodes = {
  'proc/self/status': 'Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t0-7',
  ...Object.fromEntries(
    [0, 1, 2, 3, 4, 5, 6, 7].map((n) => [`${cpu}/cpu${n}/topology/thread_siblings_list`, `${n % 4},${(n % 4) + 4}`]),
  ),
  [`${node}/node0/cpulist`]: '0-1,4-5',
  [`${node}/node1/cpulist`]: '2-3,6-7',
  [`${node}/has_cpu`]: '0-1',
  [gpu('0000:C1:00.0')]: 'Model: X\nGPU UUID: \t GPU-cccc-1111\n',
  [gpu('0000:01:00.0')]: 'Model: X\nGPU UUID: \t GPU-aaaa-0000\n',
  [`${pci('0000:01:00.0')}/numa_node`]: '0',
  [`${pci('0000:01:00.0')}/local_cpulist`]: '0-1,4-5',
  [`${pci('0000:c1:00.0')}/numa_node`]: '1',
  [`${pci('0000:c1:00.0')}/local_cpulist`]: '2-3,6-7',
};

describe('hostTopology', () => {
  test('hostTopology finds cores of two threads, NUMA nodes and GPUs', () => {
    expect(hostTopology(rootWith(twoNodes), undefined)).toEqual({
      cores: [
        { cpus: [0, 4], numa: 0 },
        { cpus: [1, 5], numa: 0 },
        { cpus: [2, 6], numa: 1 },
        { cpus: [3, 7], numa: 1 },
      ],
      gpus: [
        { cpus: [0, 1, 4, 5], numa: 0 },
        { cpus: [2, 3, 6, 7], numa: 1 },
      ],
    });
  });

  test('hostTopology finds only what a container may use', () => {
    const root = rootWith({ ...twoNodes, 'proc/self/status': 'Cpus_allowed_list:\t3,5-6' });
    expect(hostTopology(root, '1')).toEqual({
      cores: [
        { cpus: [3], numa: 1 },
        { cpus: [5], numa: 0 },
        { cpus: [6], numa: 1 },
      ],
      gpus: [{ cpus: [3, 6], numa: 1 }],
    });
  });

  test('hostTopology works without NUMA nodes, threads and GPUs', () => {
    expect(hostTopology(rootWith({ 'proc/self/status': 'Cpus_allowed_list:\t0-1' }), undefined)).toEqual({
      cores: [
        { cpus: [0], numa: 0 },
        { cpus: [1], numa: 0 },
      ],
      gpus: [],
    });
  });

  test('hostTopology gives a GPU no NUMA node if the kernel reports -1', () => {
    const files = { 'proc/self/status': 'Cpus_allowed_list:\t0', [gpu('0000:01:00.0')]: '' };
    const root = rootWith({ ...files, [`${pci('0000:01:00.0')}/numa_node`]: '-1' });
    expect(hostTopology(root, undefined).gpus).toEqual([{ cpus: [], numa: null }]);
  });
});

/** `name@bus` of each. */
const names = (visible: string | undefined, files: Readonly<Record<string, string>> = twoNodes) =>
  visibleGpus(visible, rootWith(files)).map(({ name, address }) => `${name}@${address?.slice(5, 7) ?? ''}`);

describe('visibleGpus', () => {
  test.each<[string | undefined, string[]]>([
    [undefined, ['0@01', '1@C1']],
    ['1,0', ['1@C1', '0@01']],
    ['1', ['1@C1']],
    ['', []],
    ['NoDevFiles', []],
    ['-1', []],
    ['0,7,1', ['0@01']],
    ['GPU-cccc', ['GPU-cccc@C1']],
    ['GPU-dddd,0', []],
    ['MIG-1', ['MIG-1@']],
  ])('a program with CUDA_VISIBLE_DEVICES=%s sees the expected GPUs', (visible, expected) => {
    expect(names(visible)).toEqual(expected);
  });

  test('visibleGpus falls back to device files', () => {
    const files = { 'dev/nvidia0': '', 'dev/nvidia1': '', 'dev/nvidiactl': '', 'dev/nvidia-uvm': '' };
    expect(names(undefined, files)).toEqual(['0@', '1@']);
    expect(names('1', files)).toEqual(['1@']);
    expect(names('0', {})).toEqual([]);
  });
});

test.each([
  ['0-3,8', [0, 1, 2, 3, 8]],
  ['5', [5]],
  ['', []],
  ['3-1', []],
  ['x', []],
])('parseCpuList reads %j', (text, expected) => {
  expect(parseCpuList(text)).toEqual(expected);
});
