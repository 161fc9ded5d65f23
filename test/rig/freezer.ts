/**
 * Stops every process of a pid namespace at once, as a hung kernel would: sockets stay, TCP still acknowledges, nothing runs. Through the cgroup
 * freezer (version 1 or 2), else by SIGSTOP to each.
 */
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { inPidNamespaceOf } from './processes.ts';
import { until } from './until.ts';

interface Group {
  readonly directory: string;
  readonly home: string;
  freeze(on: boolean): void;
  frozen(): boolean;
}

function versionOne(name: string): Group {
  const home = '/sys/fs/cgroup/freezer';
  const directory = join(home, name);
  const state = join(directory, 'freezer.state');
  return {
    directory,
    home,
    freeze: (on) => writeFileSync(state, on ? 'FROZEN' : 'THAWED'),
    frozen: () => readFileSync(state, 'utf8').trim() === 'FROZEN',
  };
}

function versionTwo(name: string): Group {
  const home = '/sys/fs/cgroup';
  const directory = join(home, name);
  return {
    directory,
    home,
    freeze: (on) => writeFileSync(join(directory, 'cgroup.freeze'), on ? '1' : '0'),
    frozen: () => readFileSync(join(directory, 'cgroup.events'), 'utf8').includes('frozen 1'),
  };
}

function groupOf(name: string): Group | null {
  if (existsSync('/sys/fs/cgroup/freezer/cgroup.procs')) return versionOne(name);
  return existsSync('/sys/fs/cgroup/cgroup.controllers') ? versionTwo(name) : null;
}

function move(pid: number, directory: string): void {
  try {
    writeFileSync(join(directory, 'cgroup.procs'), String(pid));
  } catch {
    // ended meanwhile
  }
}

/** Moves all of the namespace into the group; repeated, because the moved may have forked on the way. */
function moveAll(init: number, directory: string): void {
  for (let known = new Set<number>(), found = 1; found > 0; ) {
    const fresh = inPidNamespaceOf(init).filter((entry) => !known.has(entry.pid));
    found = fresh.length;
    for (const entry of fresh) move(entry.pid, directory);
    known = new Set([...known, ...fresh.map((entry) => entry.pid)]);
  }
}

/** Freezes the namespace whose first process is `init`; `state` is the cluster's directory, told so that login.sh can thaw. */
export async function freeze(state: string, host: string, init: number): Promise<() => Promise<void>> {
  const group = groupOf(`${basename(state)}-${host}`);
  if (group === null) {
    const stopped = inPidNamespaceOf(init);
    for (const entry of stopped) signal(entry.pid, 'SIGSTOP');
    return () => Promise.resolve(stopped.forEach((entry) => signal(entry.pid, 'SIGCONT')));
  }
  mkdirSync(group.directory);
  appendFileSync(join(state, 'frozen'), `${group.directory}\n`);
  moveAll(init, group.directory);
  group.freeze(true);
  await until(`${host} frozen`, () => group.frozen() || standsStill(init));
  return async () => {
    group.freeze(false);
    for (const entry of inPidNamespaceOf(init)) move(entry.pid, group.home);
    await until(`the freezer of ${host} empty`, () => remove(group.directory));
  };
}

/** Freezes one process; `name` is that of a new group. Null where the machine has no freezer. */
export function freezeProcess(pid: number, name: string): (() => Promise<void>) | null {
  const group = groupOf(name);
  if (group === null) return null;
  mkdirSync(group.directory);
  move(pid, group.directory);
  group.freeze(true);
  return async () => {
    group.freeze(false);
    move(pid, group.home);
    await until(`the freezer ${name} empty`, () => remove(group.directory));
  };
}

/** A process that waits in the kernel for one that is frozen (vfork) never counts as frozen itself. */
function standsStill(init: number): boolean {
  return inPidNamespaceOf(init).every(({ state }) => state === 'D');
}

function remove(directory: string): boolean {
  try {
    rmdirSync(directory);
    return true;
  } catch {
    return false; // a dying process is still in it
  }
}

function signal(pid: number, name: 'SIGSTOP' | 'SIGCONT'): void {
  try {
    process.kill(pid, name);
  } catch {
    // ended meanwhile
  }
}
