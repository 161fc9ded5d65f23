/** --bind-to, --report-bindings, --map-by numa and gpu, --isolate-gpus: what ranks find, on this machine and on one that it plays. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ranges } from '../../launcher/text/ranges.ts';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { cpus, FakeMachine, machineUnavailable } from '../rig/machine.ts';

const say = [
  'sh',
  '-c',
  'echo "$RANK $(sed -n "s/^Cpus_allowed_list:.//p" /proc/self/status) ${CUDA_VISIBLE_DEVICES-all}"',
];
const plain = '--tag-output=none';

/** `rank cpus gpus` of each rank, in their order. */
const found = (stdout: string) => stdout.trim().split('\n').toSorted();
const reported = (stderr: string) => stderr.split('\n').filter((line) => line.startsWith('ncclrun: rank '));

describe('binding on this machine', () => {
  const all = ranges(cpus);

  it('a rank is not bound by default', async () => {
    const environment = { CUDA_VISIBLE_DEVICES: undefined };
    const { stdout, stderr } = await Command.run([plain, '-n', '1', '--report-bindings', ...say], { environment });
    expect(found(stdout)).toEqual([`0 ${all} all`]);
    expect(reported(stderr)[0]).toMatch(new RegExp(`^ncclrun: rank 0 on localhost: not bound, CPUs? ${all}`));
  });

  it('--bind-to core binds each rank to one core', async () => {
    const { stdout, stderr } = await Command.run([plain, '-n', '1', '--bind-to', 'core', '--report-bindings', ...say]);
    const [, list = ''] = found(stdout)[0]?.split(' ') ?? [];
    expect(list.split(/[,-]/u)[0]).toBe(String(cpus[0]));
    expect(reported(stderr)[0]).toContain(`rank 0 on localhost: bound to CPU`);
  });

  it('the launcher rejects a binding without enough cores or with an unknown name', async () => {
    const ranks = String(cpus.length + 1);
    const few = await Command.run(['-n', ranks, '--bind-to', 'core', 'true']);
    expect(few.status).toBe(2);
    expect(few.stderr).toMatch(/finds no core on localhost for itself.*--bind-to numa/s);
    const shared = await Command.run(['-n', ranks, '--bind-to', 'core', '--oversubscribe', 'true']);
    expect(shared).toMatchObject({ status: 0, stderr: '' });
    const wrong = await Command.run(['-n', '1', '--bind-to', 'cores', 'true']);
    expect(wrong).toMatchObject({ status: 2, stderr: expect.stringContaining('none, core, numa, gpu') });
  });

  it('--events contains the bindings', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'ncclrun-binding-'));
    const file = join(directory, 'events');
    const { status } = await Command.run(['-n', '1', '--report-bindings', '--events', file, 'true']);
    const lines = (await readFile(file, 'utf8')).trim().split('\n');
    await rm(directory, { recursive: true });
    expect(status).toBe(0);
    const bindings = lines.map((line) => JSON.parse(line)).filter(({ type }) => type === 'binding');
    expect(bindings).toMatchObject([{ rank: 0, bound: false, cpus }]);
  });
});

describeIf(machineUnavailable(), 'binding on a machine with NUMA nodes and GPUs', () => {
  const [first = 0, second = 1, ...more] = cpus;
  const rest = ranges([second, ...more]);
  /** The first CPU is node 0, near GPUs 0 and 2; the others are node 1, near GPU 1. */
  const machine = () => FakeMachine.make([[first], [second, ...more]], [0, 1, 0]);

  it('--map-by numa distributes ranks over the NUMA nodes, and --bind-to numa binds them there', async () => {
    await using there = await machine();
    const argv = ['-n', '3', '--map-by', 'numa', '--bind-to', 'numa', '--report-bindings'];
    const { stdout, stderr } = await there.run([plain, ...argv, ...say]);
    expect(found(stdout)).toEqual([`0 ${first} all`, `1 ${rest} all`, `2 ${first} all`]);
    expect(reported(stderr)).toEqual([
      `ncclrun: rank 0 on localhost: bound to CPU ${first}, NUMA node 0, GPU 0`,
      expect.stringMatching(/^ncclrun: rank 1 on localhost: bound to CPUs? .*, NUMA node 1, GPU 1$/),
      `ncclrun: rank 2 on localhost: bound to CPU ${first}, NUMA node 0, GPU 2`,
    ]);
  });

  it('--bind-to numa puts neighbouring ranks on the same NUMA node', async () => {
    await using there = await machine();
    const { stdout } = await there.run([plain, '-n', '4', '--bind-to', 'numa', ...say]);
    expect(found(stdout).map((line) => line.split(' ')[1])).toEqual([first, first, rest, rest].map(String));
  });

  it('--map-by gpu gives each rank a GPU, --bind-to gpu its nearby cores, and --isolate-gpus hides the others', async () => {
    await using there = await machine();
    const { stdout } = await there.run([plain, '--map-by', 'gpu', '--bind-to', 'gpu', '--isolate-gpus', ...say]);
    expect(found(stdout)).toEqual([`0 ${first} 0`, `1 ${rest} 1`, `2 ${first} 2`]);
    const many = await there.run(['-n', '4', '--map-by', 'gpu', 'true']);
    expect(many).toMatchObject({ status: 2, stderr: expect.stringContaining('there are 3') });
  });

  it('--nproc-per-node gpu starts a rank per GPU and leaves all GPUs visible', async () => {
    await using there = await machine();
    const { stdout } = await there.run([plain, '--nproc-per-node', 'gpu', ...say]);
    expect(found(stdout)).toEqual([0, 1, 2].map((rank) => `${rank} ${ranges(cpus)} all`));
    const perGpu = await there.run([plain, '--map-by', 'ppr:2:gpu', ...say]);
    expect(found(perGpu.stdout)).toHaveLength(6);
  });

  it("NCCLRUN_LOCAL_DEVICE is the index of the rank's GPU among those that it sees", async () => {
    await using there = await machine();
    const devices = async (argv: readonly string[], visible?: string): Promise<string[]> => {
      const environment = visible === undefined ? {} : { CUDA_VISIBLE_DEVICES: visible };
      const tell = ['sh', '-c', 'echo "$RANK:${NCCLRUN_LOCAL_DEVICE-none}"'];
      return found((await there.run([plain, ...argv, ...tell], { environment })).stdout);
    };
    const [dealt, isolated] = [['--map-by', 'ppr:2:gpu'], ['--isolate-gpus']];
    expect(await devices(dealt)).toEqual(['0:0', '1:0', '2:1', '3:1', '4:2', '5:2']);
    expect(await devices([...dealt, ...isolated])).toEqual([0, 1, 2, 3, 4, 5].map((rank) => `${rank}:0`));
    expect(await devices(['-n', '4'])).toEqual(['0:0', '1:1', '2:2', '3:0']);
    expect(await devices(dealt, '2,GPU-1a')).toEqual(['0:0', '1:0', '2:1', '3:1']);
    const some = ['-H', 'localhost:3', '--include', 'localhost:0,2'];
    expect(await devices(some)).toEqual(['0:0', '1:1']);
    expect(await devices([...some, '--oversubscribe', ...dealt])).toEqual(['0:0', '1:0', '2:1', '3:1']);
    expect(await devices(['-n', '3', '-x', 'CUDA_VISIBLE_DEVICES=1'])).toEqual(['0:0', '1:0', '2:0']);
    expect(await devices(['-n', '1'], '')).toEqual(['0:none']);
  });

  it('--dry-run shows the bindings of this machine', async () => {
    await using there = await machine();
    const { stdout } = await there.run(['--dry-run', '--map-by', 'gpu', '--bind-to', 'gpu', 'true']);
    expect(stdout).toContain('ncclrun --map-by gpu --bind-to gpu true\n');
    expect(stdout).toContain(`binding  rank 2 on localhost: bound to CPU ${first}, NUMA node 0, GPU 2\n`);
    const json = await there.run(['--dry-run', '--json', '--bind-to', 'numa', 'true']);
    expect(JSON.parse(json.stdout).ranks).toMatchObject([
      { rank: 0, cpus: [first], numa: 0, gpu: 0 },
      { rank: 1, cpus: [first], numa: 0, gpu: 1 },
      { rank: 2, numa: 1, gpu: 2 },
    ]);
    const elsewhere = await there.run(['--dry-run', '-H', 'node1:4', '--map-by', 'gpu', 'true']);
    expect(elsewhere.stdout).toContain('not known yet');
  });

  it('GPUs that CUDA_VISIBLE_DEVICES hides stay hidden', async () => {
    await using there = await machine();
    const environment = { CUDA_VISIBLE_DEVICES: '2,GPU-1a' };
    const { stdout } = await there.run([plain, '-N', 'gpu', '--isolate-gpus', '--bind-to', 'gpu', ...say], {
      environment,
    });
    expect(found(stdout)).toEqual([`0 ${first} 2`, `1 ${rest} GPU-1a`]);
  });

  it('--rank-by numa numbers ranks across the NUMA nodes', async () => {
    await using there = await machine();
    const argv = [plain, '--map-by', 'ppr:2:numa', '--rank-by', 'numa', '--bind-to', 'numa'];
    const { stdout } = await there.run([...argv, ...say]);
    expect(found(stdout).map((line) => line.split(' ')[1])).toEqual([first, rest, first, rest].map(String));
  });

  it('a slot number in --include selects the GPU of that number', async () => {
    await using there = await machine();
    const argv = [plain, '-H', 'localhost:3', '--include', 'localhost:0,2'];
    const { stdout } = await there.run([...argv, ...say]);
    expect(found(stdout)).toEqual([0, 1].map((rank) => `${rank} ${ranges(cpus)} 0,2`));
    const alone = await there.run([...argv, '--isolate-gpus', ...say]);
    expect(found(alone.stdout).map((line) => line.split(' ')[2])).toEqual(['0', '2']);
  });
});
