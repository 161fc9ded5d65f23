/**
 * GPUDirect between simulated hosts: the stand-in's GPUs, and a network plugin that claims to register their memory. What it receives there
 * is visible only once it was flushed (native/test/net/double).
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeAll, expect, it } from 'vitest';
import { element } from '../../control/topology/element.ts';
import type { Element } from '../../control/topology/element.ts';
import { writeXml } from '../../control/topology/write-xml.ts';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { GRAPH_BYTES, gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { nativeTests } from '../rig/native-tests.ts';
import { buildGpuDirect, buildStandIn, gpuDirectEnvironment, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { sample, sampleSize } from '../rig/whole.ts';

const PART = sampleSize(20, 40);

function environment(double: string, wishes: NodeJS.ProcessEnv = {}): NodeJS.ProcessEnv {
  return { ...process.env, ...standInEnvironment, ...ownKernels, ...gpuDirectEnvironment(double), ...wishes };
}

/** The stand-in's four GPUs, each beside a card under a PCI switch of its own. */
function fourSwitches(): Element {
  const cpu = element('cpu', { numaid: 0, arch: 'x86_64', vendor: 'GenuineIntel', familyid: 6, modelid: 143 });
  const link = { link_speed: '32.0 GT/s PCIe', link_width: 16 };
  for (let dev = 0; dev < 4; dev++) {
    const bus = (0x10 + dev).toString(16);
    const net = element('net', { name: `eth${dev}`, dev, speed: 100_000, port: 1, guid: `0x${dev + 1}`, gdr: 0 });
    const parts = [
      element('pci', { busid: `0000:${bus}:00.0`, class: '0x030200', ...link }, [
        element('gpu', { dev, sm: 80, gdr: 1 }),
      ]),
      element('pci', { busid: `0000:${bus}:03.0`, class: '0x020700', ...link }, [element('nic', {}, [net])]),
    ];
    cpu.children.push(element('pci', { busid: `0000:${bus}:01.0`, class: '0x060400', ...link }, parts));
  }
  return element('system', { version: 1 }, [cpu]);
}

const NEWER = { NCCLRUN_STAND_IN_CAPABILITY: '90' };

/** What ranks of two hosts say of GPUDirect, by rank: "0: GPUDirect by dma-buf, …". */
async function saidOf(double: string, wishes: NodeJS.ProcessEnv, ranks = 2): Promise<string[]> {
  const words = ['perf', 'all_reduce', '-n', String(ranks), '--simulate-hosts', '2', '--device', 'cuda'];
  const sizes = ['-b', '64K', '-e', '64K', '--iters', '1', '--warmup', '1', '--check'];
  const { status, stdout, stderr } = await Command.run([...words, ...sizes], {
    environment: environment(double, { NCCL_DEBUG: 'INFO', ...wishes }),
  });
  expect({ status, stdout }, stderr).toMatchObject({
    status: 0,
    stdout: expect.stringContaining('Out of bounds values : 0 OK'),
  });
  return [...stderr.matchAll(/GPU of rank .*/gu)]
    .map(([line]) => line.replace(/^GPU of rank (\d) on host \S+, NIC \w+: /u, '$1: '))
    .toSorted();
}

describeIf(noCompiler, 'GPUDirect between hosts', () => {
  beforeAll(() => {
    buildMatrix();
    buildStandIn();
    buildGpuDirect();
  }, 900_000);

  const cases: [string, number, number, string, NodeJS.ProcessEnv][] = [
    ['with flushes', 2, 2, 'device-memory', {}],
    ['with dma-bufs', 4, 2, 'device-memory,dma-buf', {}],
    ['with rings', 3, 3, 'device-memory', { NCCL_ALGO: 'ring' }],
    ['with rails', 4, 2, 'device-memory', { NCCL_ALGO: 'allreduce:rail;allgather:rail;reducescatter:rail' }],
    ['with slots of several messages', 3, 2, 'device-memory,max-bytes=20000', {}],
    ['where the plugin takes its time', 2, 2, 'device-memory,null-request=2,done-after=3', {}],
    ['where a flush needs no request', 2, 2, 'device-memory,flush-at-once', {}],
    ['without flushes on newer GPUs', 3, 2, 'device-memory,no-flush', NEWER],
    ['where the device asks for flushes', 2, 2, 'device-memory,force-flush', NEWER],
    ['with NCCL_NET_FORCE_FLUSH=1', 2, 2, 'device-memory', { ...NEWER, NCCL_NET_FORCE_FLUSH: '1' }],
    ['with NCCL_GDR_FLUSH_DISABLE=1', 2, 2, 'device-memory,no-flush', { NCCL_GDR_FLUSH_DISABLE: '1' }],
    ['with NCCL_NET_GDR_READ=0', 3, 2, 'device-memory', { NCCL_NET_GDR_READ: '0' }],
  ];
  it.each(sample(cases, 2))('every collective is exact %s on %i ranks of %i hosts', (_, ranks, hosts, double, wishes) =>
    runMatrix(ranks, ['-n', String(ranks), '--simulate-hosts', String(hosts), '--tag-output=none'], {
      seed: ranks,
      part: PART,
      environment: environment(double, wishes),
    }),
  );

  it('what nobody flushes is not visible, and the results are wrong', async () => {
    const words = ['-n', '2', '--simulate-hosts', '2', join(nativeTests, 'matrix'), '1', '60'];
    const { status, stdout, stderr } = await Command.run(words, { environment: environment('device-memory', NEWER) });
    expect({ status, isRight: stdout.includes(': 0 wrong') }).toEqual({ status: 1, isRight: false });
    expect(stderr).toContain('element 0 should be');
  });

  it.each<[string, string, NodeJS.ProcessEnv, RegExp]>([
    ['a dma-buf', 'device-memory,dma-buf', {}, /^GPUDirect by dma-buf, receives with a flush, sends$/u],
    [
      'a dma-buf that is refused',
      'device-memory,dma-buf,no-dma-buf',
      {},
      /^GPUDirect by peer memory \(.*regMrDmaBuf: system error.*no dma-buf.*\), receives with a flush, sends$/u,
    ],
    [
      'a driver without dma-bufs',
      'device-memory,dma-buf',
      { NCCLRUN_STAND_IN_DMA_BUF: '0' },
      /^GPUDirect by peer memory, receives with a flush, sends$/u,
    ],
    ['NCCL_DMABUF_ENABLE=0', 'device-memory,dma-buf', { NCCL_DMABUF_ENABLE: '0' }, /^GPUDirect by peer memory, /u],
    [
      'registration that is refused',
      'device-memory,no-device-memory',
      {},
      /^no GPUDirect, slots lie in memory of the host: .*regMr: invalid usage.*nvidia_peermem is not loaded/u,
    ],
    ['a flush that fails', 'device-memory,flush-fails', {}, /^no GPUDirect, .*iflush: system error/u],
    [
      'a plugin that reports no sizes',
      'device-memory,no-sizes',
      {},
      /^no GPUDirect, .*it reports 64 bytes of a message of 8/u,
    ],
    ['a device without it', 'receives=1', {}, /^no GPUDirect: the network Double does not register GPU memory there$/u],
    [
      'a card that is too far away',
      'device-memory',
      { NCCL_NET_GDR_LEVEL: 'PXB' },
      /^no GPUDirect: the path SYS is longer than NCCL_NET_GDR_LEVEL allows$/u,
    ],
    [
      'NCCL_NET_GDR_READ=0',
      'device-memory',
      { NCCL_NET_GDR_READ: '0' },
      /^GPUDirect by peer memory, receives with a flush, no sends: .*\(NCCL_NET_GDR_READ\)$/u,
    ],
  ])('NCCL_DEBUG says what becomes of %s, per NIC and GPU, and the job goes on', async (_, double, wishes, line) => {
    const said = await saidOf(double, wishes);
    expect(said.map((one) => one.slice(0, 3))).toEqual(['0: ', '1: ']);
    for (const one of said) expect(one.slice(3)).toMatch(line);
  });

  it('a card reaches the GPU beside it, and not one behind another switch', async () => {
    const topology = join(await mkdtemp(join(tmpdir(), 'ncclrun-topology-')), 'topology.xml');
    await writeFile(topology, writeXml(fourSwitches()));
    const wishes = { NCCL_TOPO_FILE: topology, NCCL_NET_GDR_LEVEL: '' };
    const beside = await saidOf('device-memory,card=16', wishes, 4);
    await rm(dirname(topology), { recursive: true });
    // The ranks of each host have its first two GPUs.
    expect(beside).toEqual([
      '0: GPUDirect by peer memory, receives with a flush, sends',
      '1: no GPUDirect: the path PHB is longer than NCCL_NET_GDR_LEVEL allows',
      '2: GPUDirect by peer memory, receives with a flush, sends',
      '3: no GPUDirect: the path PHB is longer than NCCL_NET_GDR_LEVEL allows',
    ]);
  });

  it('a host whose plugin registers no GPU memory and one whose plugin does exchange exact results', async () => {
    const matrix = join(nativeTests, 'matrix');
    const choice = '$([ $GROUP_RANK = 0 ] && echo device-memory || echo receives=8)';
    const script = `NCCLRUN_NET_DOUBLE=${choice} exec ${matrix} 3 ${PART}`;
    const words = ['-n', '4', '--simulate-hosts', '2', '--tag-output=none', 'sh', '-c', script];
    const { status, stdout, stderr } = await Command.run(words, {
      environment: environment('', { NCCL_DEBUG: 'INFO' }),
    });
    expect({ status, right: stdout.includes('on 4 ranks: 0 wrong') }, stderr).toEqual({ status: 0, right: true });
    expect(stderr).toMatch(/GPU of rank 0 on host .*: GPUDirect by peer memory/u);
    expect(stderr).toMatch(/GPU of rank 3 on host .*: no GPUDirect: the network Double does not register/u);
  });

  const programs = gpuPrograms();
  it.each([
    [`graphs 3 10 ${GRAPH_BYTES}`, `graphs: 3 ranks, 10 replays, up to ${GRAPH_BYTES} bytes: right`],
    ['abort_alone 2', 'abort_alone: 2 ranks: those who did not wait went on'],
    ['leave 2', 'leave: 2 ranks: who needed it was told, and nobody else'],
    ['slots 2 3 2', 'slots: 2 ranks, 3 communicators, 2 aborts: right'],
  ])(
    'the program %s succeeds on two hosts',
    (line, says) => programs.expectOnHosts(2, line, says, environment('device-memory', { NCCL_MAX_NCHANNELS: '4' })),
    240_000,
  );
});
