/** The addon's probes, on libraries that stand in for NVIDIA's and for rdma-core's. */
import { execFile } from 'node:child_process';
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { compileLibrary } from '../rig/compile.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';

const execFileAsync = promisify(execFile);
let directory = '';
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'ncclrun-probes-'));
});
afterAll(() => rm(directory, { recursive: true }));

/** A library of that source; its path. */
const library = (name: string, options: readonly string[] = []): Promise<string> =>
  compileLibrary(directory, name, options);

/** Of the stand-in for rdma-core's library. */
function standInVerbs(): string {
  buildNativeTests('stand_in_verbs');
  return join(nativeTests, 'stand-in-verbs/libibverbs.so.1');
}

/** What a probe answers in a process of its own, with that in its environment. */
async function probe(
  name: 'nvmlGpus' | 'gpuMemory' | 'gpuHealth' | 'cudaGpus' | 'verbsPorts',
  environment: NodeJS.ProcessEnv,
): Promise<unknown> {
  const script = `import { loadNative } from '${repository}/worker/engine/load.ts';
    process.stdout.write(JSON.stringify(await loadNative().${name}()));`;
  const { stdout } = await execFileAsync(process.execPath, ['--input-type=module', '-e', script], {
    env: { ...process.env, ...environment },
  });
  return JSON.parse(stdout);
}

const link = (remote: string | null) => ({ active: true, remote });
const down = { active: false, remote: null };
/** Six, as they are there, and those that no GPU has. */
const links = (peer: string) =>
  [link(peer), link(peer), down, down, link(null), link('FFFFFFF:FFFF:FF')].concat(
    Array.from({ length: 12 }, () => down),
  );

describe('NVML', () => {
  it('nvmlGpus lists GPUs with their NVLinks and C2C', async () => {
    const NCCLRUN_LIBNVIDIA_ML = await library('stand-in-nvml');
    expect(await probe('nvmlGpus', { NCCLRUN_LIBNVIDIA_ML })).toEqual([
      { busId: '00000000:1B:00.0', index: 0, computeCapability: 90, links: links('0000:2B:00.0'), c2c: null },
      {
        busId: '00000000:2B:00.0',
        index: 1,
        computeCapability: 91,
        links: links('0000:1B:00.0'),
        c2c: { count: 1, bandwidth: 44_712 },
      },
    ]);
  });

  it('gpuMemory lists free memory and the processes that hold the rest', async () => {
    const NCCLRUN_LIBNVIDIA_ML = await library('stand-in-nvml');
    const NCCLRUN_STAND_IN_MEMORY = join(directory, 'memory');
    await writeFile(NCCLRUN_STAND_IN_MEMORY, '143000 143771\n20000 143771 4711 120000 4712 -\n');
    const MiB = 2 ** 20;
    expect(await probe('gpuMemory', { NCCLRUN_LIBNVIDIA_ML, NCCLRUN_STAND_IN_MEMORY })).toEqual([
      { busId: '00000000:1B:00.0', total: 143_771 * MiB, free: 143_000 * MiB, processes: [] },
      {
        busId: '00000000:2B:00.0',
        total: 143_771 * MiB,
        free: 20_000 * MiB,
        processes: [
          { pid: 4711, used: 120_000 * MiB },
          { pid: 4712, used: null },
        ],
      },
    ]);
    expect(await probe('gpuMemory', { NCCLRUN_LIBNVIDIA_ML })).toEqual([]);
  });

  it('nvmlGpus returns the reason when NVML is unavailable', async () => {
    const missing = join(directory, 'missing.so');
    expect(await probe('nvmlGpus', { NCCLRUN_LIBNVIDIA_ML: missing })).toBe(
      `${missing}: cannot open shared object file: No such file or directory`,
    );
    const noDriver = await library('stand-in-nvml', ['-DNO_DRIVER']);
    expect(await probe('nvmlGpus', { NCCLRUN_LIBNVIDIA_ML: noDriver })).toBe('nvmlInit says Driver Not Loaded');
    const other = standInVerbs();
    expect(await probe('nvmlGpus', { NCCLRUN_LIBNVIDIA_ML: other })).toBe(
      'libnvidia-ml.so.1 has no nvmlInit_v2: the driver is older than CUDA 11',
    );
  });
});

describe('the health of GPUs', () => {
  it('gpuHealth has clocks, throttling, ECC errors and PCIe links, or null where the driver does not say', async () => {
    const NCCLRUN_STAND_IN_HEALTH = join(directory, 'health');
    await writeFile(NCCLRUN_STAND_IN_HEALTH, '1200 1980 0x44 7 1 8 16\n');
    const NCCLRUN_LIBNVIDIA_ML = await library('stand-in-nvml');
    const unknown = { clock: null, maxClock: null, throttleReasons: null, corrected: null, uncorrected: null };
    expect(await probe('gpuHealth', { NCCLRUN_LIBNVIDIA_ML, NCCLRUN_STAND_IN_HEALTH })).toEqual([
      {
        busId: '00000000:1B:00.0',
        clock: 1200,
        maxClock: 1980,
        throttleReasons: 0x44,
        corrected: 7,
        uncorrected: 1,
        pcieWidth: 8,
        maxPcieWidth: 16,
      },
      { busId: '00000000:2B:00.0', ...unknown, pcieWidth: null, maxPcieWidth: null },
    ]);
  });

  it('gpuHealth returns the reason when NVML is unavailable', async () => {
    expect(await probe('gpuHealth', { NCCLRUN_LIBNVIDIA_ML: '/nonexistent' })).toMatch(/^\/nonexistent: cannot open/);
  });
});

describe('verbs', () => {
  it('verbsPorts lists the ports of the cards that can be opened, with their GIDs', async () => {
    const NCCL_IBVERBS_LIB = standInVerbs();
    const STAND_IN_VERBS =
      'device=mlx5_0 link=ib gbps=400 lid=7 qps=131072 port=2 state=down mtu=1024 device=mlx5_1 open=13';
    const shared = { name: 'mlx5_0', guid: expect.stringMatching(/^0x[0-9a-f]+$/), maxQueuePairs: 131_072 };
    const code = { activeWidth: 2, firmware: expect.stringMatching(/./) };
    expect(await probe('verbsPorts', { NCCL_IBVERBS_LIB, STAND_IN_VERBS })).toEqual([
      {
        ...shared,
        ...code,
        port: 1,
        active: true,
        ethernet: false,
        activeSpeed: 128,
        lid: 7,
        activeMtu: 5,
        gids: [{ index: 0, gid: expect.stringMatching(/^fe80::/) }],
      },
      {
        ...shared,
        ...code,
        port: 2,
        active: false,
        ethernet: true,
        activeSpeed: 32,
        lid: 0,
        activeMtu: 3,
        gids: [
          { index: 0, gid: expect.stringMatching(/^fe80::/) },
          { index: 1, gid: '::ffff:10.8.1.1' },
        ],
      },
    ]);
  });

  it('verbsPorts returns the reason when libibverbs is unavailable', async () => {
    const missing = join(directory, 'missing.so');
    expect(await probe('verbsPorts', { NCCL_IBVERBS_LIB: missing })).toContain('cannot open shared object file');
    const other = await library('stand-in-nvml');
    expect(await probe('verbsPorts', { NCCL_IBVERBS_LIB: other })).toBe('libibverbs.so.1 has no ibv_get_device_list');
  });

  it('verbsPorts executes no library that others may have written', async () => {
    const planted = join(directory, 'planted-libibverbs.so.1');
    await copyFile(standInVerbs(), planted);
    await chmod(planted, 0o646);
    expect(await probe('verbsPorts', { NCCL_IBVERBS_LIB: planted })).toBe(
      `${planted} is not executed, it may be another user's: others may write to ${planted} (mode 646)`,
    );
    await chmod(planted, 0o644);
    expect(await probe('verbsPorts', { NCCL_IBVERBS_LIB: planted })).toBeInstanceOf(Array);
    await mkdir(join(directory, 'open'));
    await chmod(join(directory, 'open'), 0o757);
    const inside = join(directory, 'open', 'libibverbs.so.1');
    await copyFile(planted, inside);
    expect(await probe('verbsPorts', { NCCL_IBVERBS_LIB: inside })).toContain('/open (mode 757)');
  });
});

it('cudaGpus returns GPUs or the reason why there are none', async () => {
  const answer = await probe('cudaGpus', {});
  expect(Array.isArray(answer) || (typeof answer === 'string' && answer !== '')).toBe(true);
});
