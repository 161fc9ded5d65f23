/** On which device a communicator is: machines with GPUs that the kernels here cannot use, and buffers of the other device. */
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';
import { ownKernels, standInEnvironment } from '../rig/stand-in.ts';

let directory = '';
let program = '';
const standIn = { LD_LIBRARY_PATH: join(nativeTests, 'stand-in') };
/** The engine with other kernels beside it, or none. */
const copies = { none: join(nativeTests, 'without-kernels'), others: join(nativeTests, 'other-kernels') };
const otherKernels = join(copies.others, 'kernels');
const preload = (copy: string) => ({ ...standIn, LD_PRELOAD: join(copy, 'libnccl.so.2') });

/** A file of kernels as nvcc begins it, of `bytes` bytes, of which `content` is there: a module's name, which does for the stand-in. */
function fatbin(bytes: number, content = ''): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(0xba55ed50, 0);
  header.writeUInt16LE(1, 4);
  header.writeUInt16LE(header.length, 6);
  header.writeBigUInt64LE(BigInt(bytes), 8);
  return Buffer.concat([header, Buffer.from(content)]);
}

beforeAll(async () => {
  if (noCompiler !== null) return;
  directory = await mkdtemp(join(repository, 'build/test-device-choice-'));
  buildNativeTests('stand_in_driver');
  buildNativeTests('engine_copies');
  program = await compileWithEngine('test/rig/programs/gpu-buffers.c', directory);
}, 900_000);
afterAll(() => (directory === '' ? undefined : rm(directory, { recursive: true })));

/** The program with variables of its own. */
function rankOf(words: string, environment: Readonly<Record<string, string>>): string[] {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  return ['env', '-u', 'NCCLRUN_KERNELS', '-u', 'NCCLRUN_DEVICE', ...variables, program, words];
}

/** What a rank alone says. */
async function say(words: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const run = await Command.run(['-n', '1', '--tag-output=none', ...rankOf(words, environment)]);
  expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 0, stderr: '' });
  return run.stdout.trimEnd();
}

describeIf(noCompiler, 'an engine without kernels', () => {
  const gpus = preload(copies.none);

  it('ncclCommInitRank fails on a machine with GPUs instead of selecting the host device', async () => {
    expect(await say('join', gpus)).toBe(
      `5 ncclCommInitRank: this machine has 4 GPUs, but there are no kernels for GPUs in ${copies.none}/kernels. Where nvcc is, ` +
        'ncclrun build --kernels makes them. NCCLRUN_DEVICE=host takes the host device, for buffers in ordinary memory',
    );
  });

  it('ncclCommInitRank fails where NCCLRUN_DEVICE=cuda selects the GPUs', async () => {
    const said = await say('join', { ...gpus, NCCLRUN_DEVICE: 'cuda' });
    expect(said).toMatch(/^5 ncclCommInitRank: NCCLRUN_DEVICE=cuda, but there are no kernels for GPUs in /);
  });

  it('the engine uses the host device where NCCLRUN_DEVICE selects it', async () => {
    expect(await say('join', { ...gpus, NCCLRUN_DEVICE: 'host' })).toBe('-1');
  });

  it('the engine uses the host device where the driver reports no GPU', async () => {
    expect(await say('join', { ...gpus, NCCLRUN_STAND_IN_GPUS: '0' })).toBe('-1');
  });

  it('the engine uses the host device on a machine without a driver', async () => {
    expect(await say('join', { ...gpus, LD_LIBRARY_PATH: '' })).toBe('-1');
  });
});

describeIf(noCompiler, 'buffers in GPU memory on the host device', () => {
  const host = { ...standIn, NCCLRUN_DEVICE: 'host' };

  it.each([
    ['allReduceSend', 'ncclAllReduce: sendbuff'],
    ['allReduceReceive', 'ncclAllReduce: recvbuff'],
    ['send', 'ncclSend: sendbuff'],
    ['scalar', 'ncclRedOpCreatePreMulSum: scalar'],
  ])('%s fails and names the argument and the GPU', async (call, subject) => {
    expect((await say(call, host)).replace(/0x[0-9a-f]+/, 'ADDRESS')).toBe(
      `4 ${subject} is ADDRESS, memory of GPU 0, but the communicator is on the host device, which takes buffers in ordinary memory. ` +
        'Unset NCCLRUN_DEVICE or set it to cuda to use the GPU',
    );
  });

  it('a call of zero elements accepts any pointer', async () => {
    expect(await say('none', host)).toBe('0');
  });
});

/** What becomes of joining with those kernels on GPUs of a compute capability. */
async function joins(capability: string): Promise<{ stdout: string; stderr: string }> {
  const gpus = { ...preload(copies.others), NCCLRUN_STAND_IN_CAPABILITY: capability, ...ownKernels };
  return Command.run(['-n', '1', '--tag-output=none', ...rankOf('join', { ...gpus, NCCL_DEBUG: 'INFO' })]);
}

describeIf(noCompiler, 'kernels that the GPU cannot run', () => {
  const others = preload(copies.others);
  const bytes = join(otherKernels, 'bytes.fatbin');
  beforeEach(() => writeFile(bytes, fatbin(0)));
  afterEach(() => rm(bytes, { force: true }));

  it('ncclCommInitRank names kernels of other architectures and the command that builds the right ones', async () => {
    expect(await say('join', { ...others, NCCLRUN_STAND_IN_CAPABILITY: '75' })).toBe(
      `5 ncclCommInitRank: this machine has 4 GPUs, but GPU 0 has compute capability 7.5, and the kernels in ${otherKernels} are for ` +
        '8.0 and 9.0, and as PTX for 8.0 and newer. Where nvcc is, ncclrun build --kernels 75 makes kernels for it. ' +
        'NCCLRUN_DEVICE=host takes the host device, for buffers in ordinary memory',
    );
  });

  it('ncclCommInitRank names the kernel file that the driver rejects', async () => {
    const said = await say('join', others);
    expect(said).toContain(`the kernels in ${bytes} cannot be loaded: CUDA_ERROR_NO_BINARY_FOR_GPU`);
    expect(said).toContain('ncclrun build --kernels 90 makes kernels for it');
  });

  it('the driver compiles PTX kernels of one type at a time, and the communicator needs only the copy kernels', async () => {
    await writeFile(bytes, fatbin(6, 'bytes\0'));
    const newer = await joins('120');
    expect(newer.stdout).toBe('0\n');
    expect(newer.stderr.match(/ the driver compiles (.*) for GPU 0,.*--kernels 120 /g), newer.stderr).toHaveLength(1);
    expect(newer.stderr).toContain(`the driver compiles ${bytes} for GPU 0, which takes up to a minute the first time`);
    expect((await joins('90')).stdout).toMatch(
      /^2 .*: there are no kernels in .*\.fatbin: No such file or directory\. Build/,
    );
  });

  it.each([
    ['truncated', fatbin(1)],
    ['empty', Buffer.alloc(0)],
    ['not a fatbin', Buffer.alloc(100)],
  ])('ncclCommInitRank rejects a kernel file that is %s before the driver sees it', async (_, content) => {
    await writeFile(bytes, content);
    expect(await say('join', others)).toContain(`the kernels in ${bytes} are not whole`);
  });

  it('ncclCommInitRank names a missing kernel file', async () => {
    await rm(bytes);
    expect(await say('join', others)).toContain(
      `there are no kernels in ${bytes}: No such file or directory. Build or install`,
    );
  });

  it('ncclCommInitRank succeeds on a GPU of a newer architecture', async () => {
    const newer = { ...standInEnvironment, ...ownKernels, NCCLRUN_STAND_IN_CAPABILITY: '120' };
    expect(await say('join', newer)).toBe('0');
  });
});

describeIf(
  noCompiler ?? (process.getuid?.() === 0 ? null : 'needs root, to give a file away'),
  'kernels of another user',
  () => {
    it('ncclCommInitRank does not load a kernel file of another user', async () => {
      const bytes = join(otherKernels, 'bytes.fatbin');
      await writeFile(bytes, fatbin(0));
      await chown(bytes, 65_534, 65_534);
      const output = await say('join', preload(copies.others));
      await rm(bytes);
      expect(output).toContain(`the kernels in ${bytes} are not loaded, they may be another user's`);
    });
  },
);
