/** The program in which faults are planted, and the devices that it runs on. */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { repository } from '../rig/cluster.ts';
import { ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import type { Device } from './play.ts';

const execFileAsync = promisify(execFile);

export async function compileFaulty(directory: string): Promise<string> {
  const output = join(directory, 'faulty');
  const sources = ['faulty', 'device', 'rank'].map((name) => join(repository, 'test/gpu/native', `${name}.c`));
  const build = join(repository, 'build');
  const flags = ['-std=gnu11', '-O2', '-Wall', '-Wextra', '-Werror', '-pthread', '-DNCCLRUN_NO_CUDA_HEADERS'];
  const include = `-I${join(repository, 'native/include')}`;
  const library = [join(build, 'libnccl.so.2'), `-Wl,-rpath,${build}`, '-ldl'];
  await execFileAsync('cc', [...flags, include, '-o', output, ...sources, ...library]);
  return output;
}

export const hostDevice: Device = {
  options: ['-x', 'NCCLRUN_DEVICE=host'],
  environment: { CUDA_VISIBLE_DEVICES: '' },
};

/** The stand-in for NVIDIA's driver. */
const onGpus = { ...standInEnvironment, ...ownKernels };
export const standIn: Device = {
  options: Object.entries(onGpus).flatMap(([name, value]) => ['-x', `${name}=${value}`]),
  environment: onGpus,
};
