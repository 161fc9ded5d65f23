/** Where this installation lies. The bundle (dist/bundle) and this file (worker/agent) are both two directories deep. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const installationRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const guardianPath = join(installationRoot, 'build', 'ncclrun-guardian');
export const aggregatorPath = join(installationRoot, 'build', 'ncclrun-aggregator');
/** The ranks of `ncclrun perf` and `ncclrun tune` (native/perf). */
export const perfPath = join(installationRoot, 'build', 'ncclrun-perf');
/** The engine. */
export const libraryPath = join(installationRoot, 'build', 'libnccl.so.2');
/** Connects for ssh, without Nagle's pauses (native/dial). */
export const dialPath = join(installationRoot, 'build', 'ncclrun-dial');
/** The argument with which the agent's bundle is a private one; native/agent/private_agent.cc gives it. */
export const PRIVATE_AGENT = 'private';
/** The argument of an agent that a resource manager starts, on many hosts at once: it calls the launcher. */
export const INVITED_AGENT = 'invited';
/** What a remote shell starts; the same path on every host. */
export const agentPath = join(installationRoot, 'bin', 'ncclrun-agent');

/** Directory of the GPU kernels: build/kernels, or the package @ncclrun/kernels beside the engine's package. */
export function kernelsDirectory(root = installationRoot): string {
  const built = join(root, 'build', 'kernels');
  const packaged = join(dirname(root), 'kernels');
  return isPackage(root) && hasKernels(packaged) && !hasKernels(built) ? packaged : built;
}

/** True for the npm package without the package of the GPU kernels, which dist/identity counts as part of it. */
export function lacksPackagedKernels(root = installationRoot): boolean {
  return isPackage(root) && !hasKernels(kernelsDirectory(root));
}

function isPackage(root: string): boolean {
  return basename(dirname(root)) === '@ncclrun';
}

function hasKernels(directory: string): boolean {
  return existsSync(join(directory, 'architectures'));
}

/** The version in package.json; launcher and agents must agree on it. */
export function installedVersion(): string {
  const content: unknown = JSON.parse(readFileSync(join(installationRoot, 'package.json'), 'utf8'));
  const version = typeof content === 'object' && content !== null && 'version' in content ? content.version : null;
  if (typeof version !== 'string') throw new TypeError(`${installationRoot}/package.json has no version`);
  return version;
}
