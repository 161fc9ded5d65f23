/** Variables of the login that change what NCCL does, and which NCCL programs find first. */
import { existsSync, realpathSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import type { HostReadings } from '../../control/readings.ts';
import { readText } from '../topology/system-files.ts';

/** Where packages of distributions and of NVIDIA put it. */
const systemLibraries = ['x86_64-linux-gnu', 'aarch64-linux-gnu', '']
  .map((directory) => join('usr/lib', directory, 'libnccl.so.2'))
  .concat('usr/lib64/libnccl.so.2');

type Variables = Readonly<Record<string, string | undefined>>;

export function readEnvironment(
  root: string,
  variables: Variables,
): Omit<HostReadings['environment'], 'engineProblem'> {
  const own = Object.entries(variables)
    .filter(([name]) => isMeant(name))
    .map(([name, value = '']) => ({ name, value: value.slice(0, 200), source: 'environment' }));
  const files = ['etc/nccl.conf', ...(variables['HOME'] === undefined ? [] : [join(variables['HOME'], '.nccl.conf')])];
  const written = files.flatMap((file) =>
    Array.from(readText(root, file).matchAll(/^\s*(NCCL_\w+)\s*=\s*(.*?)\s*$/gmu), ([, name = '', value = '']) => ({
      name,
      value: value.slice(0, 200),
      source: isAbsolute(file) ? file : `/${file}`,
    })),
  );
  const library = libraryOf(variables);
  return {
    nccl: [...own, ...written],
    visibleGpus: variables['CUDA_VISIBLE_DEVICES'] ?? null,
    library,
    libraryVersion: versionOf(library === null ? systemLibraries.map((path) => join(root, path)) : [library]),
  };
}

/** ncclrun gives each host a port of its own for NCCL's RAS. */
function isMeant(name: string): boolean {
  return (name.startsWith('NCCL_') && name !== 'NCCL_RAS_ADDR') || name === 'CUDA_LAUNCH_BLOCKING';
}

function libraryOf(variables: Variables): string | null {
  const preloaded = (variables['LD_PRELOAD'] ?? '').split(/[ :]/u).find((path) => path.includes('libnccl'));
  if (preloaded !== undefined) return preloaded;
  const directories = (variables['LD_LIBRARY_PATH'] ?? '').split(':').filter(isAbsolute);
  return directories.map((directory) => join(directory, 'libnccl.so.2')).find(existsSync) ?? null;
}

/** libnccl.so.2 is a link to libnccl.so.2.27.3. */
function versionOf(paths: readonly string[]): string | null {
  const found = paths.find(existsSync);
  if (found === undefined) return null;
  try {
    return /libnccl\.so\.(\d+\.\d+(?:\.\d+)?)$/u.exec(realpathSync(found))?.[1] ?? null;
  } catch {
    return null;
  }
}
