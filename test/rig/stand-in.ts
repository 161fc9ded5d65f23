/**
 * The stand-in for NVIDIA's driver (native/test/driver): jobs and programs take its GPUs, where there are none. It runs the kernels'
 * own code, a fiber for each of their threads, or quicker ones of its own.
 */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { buildNativeTests, nativeTests } from './native-tests.ts';

const toolkits = [
  '/usr/local/cuda',
  ...(process.env['PATH'] ?? '').split(':').map((directory) => join(directory, '..')),
];
const headers = toolkits.flatMap((toolkit) =>
  ['include', 'targets/x86_64-linux/include'].map((name) => join(toolkit, name)),
);

/** null: it can run the kernels' own code. Suites may be skipped for it, as for want of a GPU. */
export const noStandInKernels = headers.some((directory) => existsSync(join(directory, 'cuda_fp8.h')))
  ? null
  : 'the kernels’ own code needs the headers of CUDA’s toolkit';

export function buildStandIn(): void {
  buildNativeTests('stand_in_driver');
}

/** With the kernels' own code: of all types, or of these modules alone (native/cuda/kernels). */
export function buildStandInKernels(modules: readonly string[] | null = null): void {
  buildNativeTests('stand_in_driver');
  for (const target of modules?.map((name) => `kernels_${name}`) ?? ['stand_in_kernels']) buildNativeTests(target);
}

export const standInEnvironment: Readonly<Record<string, string>> = {
  LD_LIBRARY_PATH: join(nativeTests, 'stand-in'),
  NCCLRUN_KERNELS: join(nativeTests, 'stand-in/kernels'),
};
/** Kernels of the stand-in's own, which are quick at any number of channels and threads. */
export const ownKernels: Readonly<Record<string, string>> = { NCCLRUN_STAND_IN_KERNELS: 'primitives' };
/** For the others: few threads, which are still several warps and blocks. */
export const fewThreads: Readonly<Record<string, string>> = { NCCL_MAX_NCHANNELS: '2', NCCL_NTHREADS: '64' };
/** Copy engines for all that they can do, however late a rank comes: ranks that share two processors come some milliseconds apart. */
export const copiesAlways: Readonly<Record<string, string>> = {
  NCCL_ALGO: 'copyengine',
  NCCLRUN_COPY_TIMEOUT_US: '10000000',
};

export function buildGpuDirect(): void {
  buildNativeTests('net_double_v12');
}

/**
 * GPUs that need flushes (compute capability 8.0), and a network plugin that claims to register their memory: what it receives there is
 * visible only once it was flushed. `double`: what else it does (native/test/net/double/behaviour.cc). Where no topology is known, every card
 * may be far away.
 */
export function gpuDirectEnvironment(double: string): Readonly<Record<string, string>> {
  return {
    NCCLRUN_STAND_IN_CAPABILITY: '80',
    NCCL_NET_GDR_LEVEL: 'SYS',
    NCCL_NET_PLUGIN: join(nativeTests, 'net/libnccl-net-double-v12.so'),
    NCCLRUN_NET_DOUBLE: double,
  };
}
