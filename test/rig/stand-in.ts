/** The stand-in for NVIDIA's driver (native/test/driver): jobs and programs take its GPUs, where there are none. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { repository } from './cluster.ts';
import { buildNativeTests, nativeTests } from './native-tests.ts';

/** null: there is one. */
export const noStandIn = existsSync(join(repository, 'build/kernels-90/bytes.fatbin'))
  ? null
  : 'the engine was built without nvcc, so it takes no GPUs';

export function buildStandIn(): void {
  buildNativeTests('stand_in_driver');
}

export const standInEnvironment: Readonly<Record<string, string>> = {
  LD_LIBRARY_PATH: join(nativeTests, 'stand-in'),
  NCCLRUN_KERNELS: join(nativeTests, 'stand-in/kernels'),
};
