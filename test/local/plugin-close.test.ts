/** Connections over a plugin are closed without an open request: some plugins crash otherwise. The double aborts then (strict-close). */
import { join } from 'node:path';
import { beforeAll, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { gpuPrograms, noCompiler } from '../rig/gpu-programs.ts';
import { buildMatrix, runMatrix } from '../rig/matrix.ts';
import { nativeTests } from '../rig/native-tests.ts';
import { buildGpuDirect, buildStandIn, gpuDirectEnvironment, ownKernels, standInEnvironment } from '../rig/stand-in.ts';

const onHost = {
  ...process.env,
  NCCLRUN_DEVICE: 'host',
  NCCL_NET_PLUGIN: join(nativeTests, 'net/libnccl-net-double-v12.so'),
};
const onGpus = (double: string): NodeJS.ProcessEnv => ({
  ...process.env,
  ...standInEnvironment,
  ...ownKernels,
  ...gpuDirectEnvironment(double),
});

describeIf(noCompiler, 'connections of a plugin that close', () => {
  beforeAll(() => {
    buildMatrix();
    buildStandIn();
    buildGpuDirect();
  }, 900_000);

  it.each<[string, number, NodeJS.ProcessEnv]>([
    ['the host device', 4, { ...onHost, NCCLRUN_NET_DOUBLE: 'strict-close' }],
    [
      'the host device, over a slow plugin',
      3,
      { ...onHost, NCCLRUN_NET_DOUBLE: 'strict-close,done-after=4,null-request=1' },
    ],
    ['GPUs', 4, onGpus('strict-close')],
    ['GPUs by GPUDirect', 3, onGpus('strict-close,device-memory')],
    ['GPUs by GPUDirect, with slots of several messages', 2, onGpus('strict-close,device-memory,max-bytes=20000')],
  ])('no request is open after the collectives of %s on %i ranks', (_, ranks, environment) =>
    runMatrix(ranks, ['-n', String(ranks), '--simulate-hosts', '2', '--tag-output=none'], {
      seed: ranks,
      part: 40,
      environment,
    }),
  );

  const programs = gpuPrograms();
  const left = 'leave: 2 ranks: who needed it was told, and nobody else';
  const runOverPlugin = (line: string, says: string, double: string) =>
    programs.expectOnHosts(2, line, says, { ...onGpus(double), NCCL_MAX_NCHANNELS: '4' });

  // In `two_streams` ranks leave one after the other, with connections that were used in one direction alone.
  it.each([
    ['two_streams 3 20 64 messages', 'two_streams: 3 ranks, 20 rounds of messages: right'],
    ['memory 4 4', 'memory: 4 ranks, 4 communicators: right'],
    ['leave 2', left],
  ])(
    'no request is open after the program %s',
    (line, says) => runOverPlugin(line, says, 'strict-close,device-memory'),
    240_000,
  );

  it(
    'a rank that leaves waits for the last transfers of a plugin that takes 0.2 s for each',
    () => runOverPlugin('leave 2', left, 'strict-close,device-memory,done-after=200'),
    240_000,
  );
});
