/**
 * What this machine lets a suite do. A suite that cannot run says why; where NCCLRUN_TEST_REQUIRE is set (CI) it fails instead,
 * so that a missing package cannot hide tests. GPU suites are the exception: they never fail for want of a GPU.
 */
import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { describe } from 'vitest';

/** The full path of a program of the PATH or the system's sbin directories, or null. */
export function findProgram(name: string): string | null {
  const directories = [...(process.env['PATH'] ?? '').split(delimiter), '/usr/sbin', '/sbin'];
  for (const directory of directories) {
    const path = join(directory, name);
    try {
      accessSync(path, constants.X_OK);
      return path;
    } catch {
      // not here
    }
  }
  return null;
}

/** Null, or the sentence why no cluster of namespaces can be made here. */
export function clusterUnavailable(): string | null {
  if (process.getuid?.() !== 0) return 'network namespaces with sshd need root';
  const missing = ['unshare', 'nsenter', 'ip', 'mount', 'sshd', 'ssh', 'ssh-keygen', 'iptables'].filter(
    (name) => findProgram(name) === null,
  );
  if (missing.length > 0) return `not installed: ${missing.join(', ')}`;
  const attempt = spawnSync('unshare', ['--net', '--mount', '--uts', '--pid', '--fork', 'true'], { encoding: 'utf8' });
  return attempt.status === 0 ? null : `unshare: ${attempt.stderr.trim() || String(attempt.error)}`;
}

/** The same for hosts whose clocks differ. */
export function ownClocksUnavailable(): string | null {
  const unavailable = clusterUnavailable();
  if (unavailable !== null) return unavailable;
  const attempt = spawnSync('unshare', ['--time', '--monotonic', '1000', '--fork', 'true'], { encoding: 'utf8' });
  return attempt.status === 0 ? null : `unshare --time: ${attempt.stderr.trim() || String(attempt.error)}`;
}

/** How many NVIDIA GPUs the driver shows. */
export function gpusHere(): number {
  const directory = '/proc/driver/nvidia/gpus';
  return existsSync(directory) ? readdirSync(directory).length : 0;
}

/** Null, or the sentence why GPU tests cannot run here. */
export function gpusUnavailable(wanted: number): string | null {
  const found = gpusHere();
  if (found < wanted) return `needs ${wanted} NVIDIA GPUs, found ${found}`;
  const compiler = findProgram('nvcc') ?? (existsSync('/usr/local/cuda/bin/nvcc') ? 'nvcc' : null);
  return compiler === null ? 'needs nvcc, which is neither in the PATH nor in /usr/local/cuda/bin' : null;
}

/** Null, or the sentence why tests cannot run `program`, or this Node, as another user. */
export function otherUsersUnavailable(program: string): string | null {
  if (process.getuid?.() !== 0) return 'to become another user needs root';
  const setpriv = findProgram('setpriv');
  if (setpriv === null) return 'setpriv is not installed';
  const who = ['--reuid=23456', '--regid=23456', '--clear-groups'];
  for (const path of [program, process.execPath]) {
    const { status } = spawnSync(setpriv, [...who, 'test', '-x', path]);
    if (status !== 0) return `other users cannot run ${path}: a folder on the way to it is closed to them`;
  }
  return null;
}

export const required = (process.env['NCCLRUN_TEST_REQUIRE'] ?? '') !== '';

/** `describe`, or a skip with its reason printed; `optional` suites never fail for the skip. */
export function describeIf(unavailable: string | null, name: string, body: () => void, optional = false): void {
  if (unavailable === null) {
    describe(name, body);
    return;
  }
  if (required && !optional)
    throw new Error(`${name}: must run here (NCCLRUN_TEST_REQUIRE) but cannot: ${unavailable}`);
  process.stderr.write(`SKIPPED ${name}: ${unavailable}\n`);
  describe.skip(`${name} (skipped: ${unavailable})`, body);
}
