/** The topology of an agent's host: files that variables name, what the planner gets of them, and what is written. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test, vi } from 'vitest';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Placement } from '../../control/messages/link.ts';
import { readMachine } from '../../control/planner/known-machine.ts';
import { AgentTopology } from '../../worker/agent/host-topology.ts';
import { type TopologyFiles, VariableError } from '../../worker/agent/topology-files.ts';
import type { Native } from '../../worker/engine/native.ts';
import { repository } from '../rig/cluster.ts';
import { playedAgent } from '../rig/played-agent.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-agent-topology-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => void vi.unstubAllEnvs());

/** Domain, bus, device and function of one of its GPUs, as ranks name it. */
const GPU = '18000';
const machine = join(repository, 'test/unit/fixtures/switches.xml');
/** A host without any of NVIDIA's libraries. */
const native: Native = Object.assign(Object.create(null), {
  nvmlGpus: async () => 'no NVML',
  cudaGpus: () => 'no CUDA',
  verbsPorts: () => 'no verbs',
});
const placement: Placement = { hostIndex: 0, hostCount: 1, rankCount: 0, programs: [], ranks: [] };
const none: TopologyFiles = {
  read: null,
  dump: null,
  graphs: null,
  dumpGraphs: null,
  environment: {},
  onGpus: false,
};

function topology() {
  const notices: string[] = [];
  return { topology: new AgentTopology(native, (message) => notices.push(message)), notices };
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
const started = async (): Promise<boolean> => true;

describe('the topology of a host', () => {
  test('it is that of the file for ranks on processors, and is found once', async () => {
    const { topology: own, notices } = topology();
    expect(own.machine('host')).toBeNull();
    await own.use({ ...none, read: machine }, placement, started);
    const found = own.machine('host');
    expect(own.machine('host')).toBe(found);
    expect((await found)?.gpusAt?.(GPU)).toBe(1);
    expect([own.writing, notices]).toEqual([null, []]);
  });

  test('there is none without a file, nor for processors where ranks use GPUs', async () => {
    const { topology: own } = topology();
    await own.use(none, placement, started);
    expect([own.machine('host'), own.machine('cuda')]).toEqual([null, null]);
    const { topology: onGpus } = topology();
    await onGpus.use({ ...none, onGpus: true }, placement, started);
    expect(onGpus.machine('host')).toBeNull();
    expect((await onGpus.machine('cuda'))?.gpusAt?.(GPU)).toBe(0);
  });

  test('nothing is found or written where the ranks do not start', async () => {
    const { topology: own } = topology();
    const dump = join(directory, 'never.xml');
    await own.use({ ...none, read: machine, dump }, placement, async () => false);
    expect([own.machine('host'), own.writing]).toEqual([null, null]);
    expect(() => readFileSync(dump)).toThrow('ENOENT');
  });

  test.each(['read', 'graphs'] as const)('a file that cannot be read names its variable (%s)', async (name) => {
    const { topology: own } = topology();
    const path = join(directory, 'missing.xml');
    let starts = 0;
    const using = own.use({ ...none, [name]: path }, placement, async () => (starts += 1) > 0);
    const variable = name === 'read' ? 'NCCL_TOPO_FILE' : 'NCCL_GRAPH_FILE';
    const error = await using.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(VariableError);
    expect(error).toMatchObject({
      message: `${variable}: ${path}: no such file or directory`,
      remedy: `correct the file, or unset ${variable}`,
    });
    expect(starts).toBe(0);
  });

  test('the file that is wanted holds it, and can be read again', async () => {
    const { topology: own, notices } = topology();
    const dump = join(directory, 'written.xml');
    const using = own.use({ ...none, read: machine, dump }, placement, started);
    await using;
    await own.writing;
    expect(own.writing).not.toBeNull();
    expect(readFileSync(dump, 'utf8')).toContain('busid="0000:18:00.0"');
    expect(notices.filter((notice) => notice.includes('not written'))).toEqual([]);
  });

  test('a file that cannot be written is a notice', async () => {
    const { topology: own, notices } = topology();
    await own.use({ ...none, dump: join(directory, 'no/such/file.xml') }, placement, started);
    expect(notices).toEqual([
      `NCCL_TOPO_DUMP_FILE is not written: ${join(directory, 'no/such/file.xml')}: no such file or directory`,
    ]);
  });

  test('another host reads it as it was sent', async () => {
    const { topology: own } = topology();
    await own.use({ ...none, read: machine }, placement, started);
    const sent = await own.machine('host');
    if (sent === null) throw new Error('the file has a topology');
    const options = { environment: {}, dumpGraphs: null, problem: () => {} };
    const read = readMachine(sent.wire, options);
    expect([read.key, read.gpusAt?.(GPU), read.gpusAt?.('ff000')]).toEqual([sent.key, 1, 0]);
  });
});

describe('an agent whose environment names a topology file', () => {
  test('starts its ranks when the file has been read', async () => {
    vi.stubEnv('NCCL_TOPO_FILE', machine);
    const { start, toGuardian, remove, reports } = playedAgent();
    start();
    expect(toGuardian).toEqual([]);
    await vi.waitFor(() => expect(toGuardian.map(({ kind }) => kind)).toEqual([FrameKind.spawn]));
    expect(reports('refusal')).toEqual([]);
    remove();
  });

  test('refuses to start ranks with a file that cannot be read', async () => {
    const broken = join(directory, 'broken.xml');
    writeFileSync(broken, '<system>');
    vi.stubEnv('NCCL_TOPO_FILE', broken);
    const { start, toGuardian, remove, reports } = playedAgent();
    start();
    await vi.waitFor(() => expect(reports('refusal')).toHaveLength(1));
    expect(reports('refusal')).toEqual([
      {
        type: 'refusal',
        message: expect.stringMatching(/^NCCL_TOPO_FILE: .*broken\.xml:1/u),
        remedy: 'correct the file, or unset NCCL_TOPO_FILE',
      },
    ]);
    expect(toGuardian).toEqual([]);
    remove();
  });

  test('starts no ranks when the end comes while the file is read', async () => {
    vi.stubEnv('NCCL_TOPO_FILE', machine);
    const { agent, start, toGuardian, remove } = playedAgent();
    start();
    agent.linkClosed();
    for (let turn = 0; turn < 20; turn++) await settled();
    expect(toGuardian).toEqual([]);
    remove();
  });
});
