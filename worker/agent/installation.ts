/** Where this installation lies. The bundle (dist/bundle) and this file (worker/agent) are both two directories deep. */
import { existsSync, readFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

export const installationRoot = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const guardianPath = join(installationRoot, 'build', 'ncclrun-guardian');
/** The engine. */
export const libraryPath = join(installationRoot, 'build', 'libnccl.so.2');
/** Connects for ssh, without Nagle's pauses (native/dial). */
export const dialPath = join(installationRoot, 'build', 'ncclrun-dial');
/** The argument with which the agent's bundle is a private one; native/core/private_agent.cc gives it. */
export const PRIVATE_AGENT = 'private';
/** The argument of an agent that a resource manager starts, on many hosts at once: it calls the launcher. */
export const INVITED_AGENT = 'invited';
/** What a remote shell starts; the same path on every host. */
export const agentPath = join(installationRoot, 'bin', 'ncclrun-agent');

/** The engine's code for GPUs: in the build, or a package of its own beside that of the engine. */
export function kernelsDirectory(): string {
  const built = join(installationRoot, 'build', 'kernels');
  const packaged = join(dirname(installationRoot), 'kernels');
  const isPackaged = basename(dirname(installationRoot)) === '@ncclrun' && existsSync(join(packaged, 'architectures'));
  return isPackaged && !existsSync(join(built, 'architectures')) ? packaged : built;
}

/** The version in package.json; launcher and agents must agree on it. */
export function installedVersion(): string {
  const content: unknown = JSON.parse(readFileSync(join(installationRoot, 'package.json'), 'utf8'));
  const version = typeof content === 'object' && content !== null && 'version' in content ? content.version : null;
  if (typeof version !== 'string') throw new TypeError(`${installationRoot}/package.json has no version`);
  return version;
}
