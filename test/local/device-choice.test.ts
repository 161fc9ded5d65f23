/** On which device a communicator is: machines with GPUs that this build cannot use, and buffers of the other device. */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { compileWithEngine } from '../rig/compile.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';
import { noStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';

let directory = '';
let program = '';
const withoutKernels = { LD_PRELOAD: join(nativeTests, 'without-kernels/libnccl.so.2') };
const noKernelsHere = { LD_LIBRARY_PATH: join(nativeTests, 'stand-in') };

beforeAll(async () => {
  if (noCompiler !== null) return;
  directory = await mkdtemp(join(repository, 'build/test-device-choice-'));
  buildNativeTests('stand_in_driver');
  buildNativeTests('nccl_without_kernels');
  program = await compileWithEngine('test/rig/programs/gpu-buffers.c', directory);
}, 900_000);
afterAll(() => (directory === '' ? undefined : rm(directory, { recursive: true })));

/** What a rank alone says, with variables of its own. */
async function say(words: string, environment: Readonly<Record<string, string>>): Promise<string> {
  const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
  const rank = ['env', '-u', 'NCCLRUN_KERNELS', '-u', 'NCCLRUN_DEVICE', ...variables, program, words];
  const run = await Command.run(['-n', '1', '--tag-output=none', ...rank]);
  expect({ status: run.status, stderr: run.stderr }).toEqual({ status: 0, stderr: '' });
  return run.stdout.trimEnd();
}

describeIf(noCompiler, 'a build without kernels', () => {
  const gpus = { ...noKernelsHere, ...withoutKernels };

  it('says so on a machine with GPUs instead of taking the host device', async () => {
    expect(await say('join', gpus)).toBe(
      '5 ncclCommInitRank: this machine has 4 GPUs, but this build of the engine has no kernels for GPUs, because nvcc was not found ' +
        'where it was built. Install the CUDA toolkit and build ncclrun again (npm run build). NCCLRUN_DEVICE=host takes the host ' +
        'device, for buffers in ordinary memory',
    );
  });

  it('says so where the program asks for the CUDA device', async () => {
    const said = await say('join', { ...gpus, NCCLRUN_DEVICE: 'cuda' });
    expect(said).toMatch(
      /^5 ncclCommInitRank: NCCLRUN_DEVICE=cuda, but this build of the engine has no kernels for GPUs/,
    );
  });

  it('takes the host device where NCCLRUN_DEVICE names it', async () => {
    expect(await say('join', { ...gpus, NCCLRUN_DEVICE: 'host' })).toBe('-1');
  });

  it('takes the host device where the driver shows no GPU', async () => {
    expect(await say('join', { ...gpus, NCCLRUN_STAND_IN_GPUS: '0' })).toBe('-1');
  });

  it('takes the host device on a machine without a driver', async () => {
    expect(await say('join', { ...gpus, LD_LIBRARY_PATH: '' })).toBe('-1');
  });
});

describeIf(noCompiler, 'buffers in GPU memory on the host device', () => {
  const host = { ...noKernelsHere, NCCLRUN_DEVICE: 'host' };

  it.each([
    ['allReduceSend', 'ncclAllReduce: sendbuff'],
    ['allReduceReceive', 'ncclAllReduce: recvbuff'],
    ['send', 'ncclSend: sendbuff'],
    ['scalar', 'ncclRedOpCreatePreMulSum: scalar'],
  ])('%s is refused, naming the argument and the GPU', async (call, subject) => {
    expect((await say(call, host)).replace(/0x[0-9a-f]+/, 'ADDRESS')).toBe(
      `4 ${subject} is ADDRESS, memory of GPU 0, but the communicator is on the host device, which takes buffers in ordinary memory. ` +
        'Unset NCCLRUN_DEVICE or set it to cuda to use the GPU',
    );
  });

  it('a call that moves no element takes any pointer', async () => {
    expect(await say('none', host)).toBe('0');
  });
});

describeIf(noStandIn ?? noCompiler, 'a GPU that the kernels were not made for', () => {
  it('of an older architecture is refused, with what would make kernels for it', async () => {
    expect(await say('join', { ...noKernelsHere, NCCLRUN_STAND_IN_CAPABILITY: '75' })).toBe(
      '5 ncclCommInitRank: this machine has 4 GPUs, but GPU 0 has compute capability 7.5, and the kernels of this build are for 9.0 and ' +
        'newer. Where nvcc is, NCCLRUN_CUDA_ARCHITECTURES=75 npm run build makes kernels for it. NCCLRUN_DEVICE=host takes the host ' +
        'device, for buffers in ordinary memory',
    );
  });

  it('whose driver refuses the kernels is refused with the same words', async () => {
    const said = await say('join', noKernelsHere);
    expect(said).toContain('the kernels cannot be loaded: CUDA_ERROR_NO_BINARY_FOR_GPU');
    expect(said).toContain('NCCLRUN_CUDA_ARCHITECTURES=90 npm run build makes kernels for it');
  });

  it('of a newer architecture is taken', async () => {
    const newer = { ...standInEnvironment, ...ownKernels, NCCLRUN_STAND_IN_CAPABILITY: '120' };
    expect(await say('join', newer)).toBe('0');
  });
});
