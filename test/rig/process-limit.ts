/** A host that starts no more processes: the pids controller of cgroups (version 1 or 2) bounds all of its pid namespace. */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { inPidNamespaceOf } from './processes.ts';
import { until } from './until.ts';

const homes = ['/sys/fs/cgroup/pids', '/sys/fs/cgroup'] as const;

/** Why hosts cannot be limited here; null: they can. */
export function processLimitUnavailable(): string | null {
  return homeOfGroups() === null ? 'no pids controller of cgroups is there to be used' : null;
}

function homeOfGroups(): string | null {
  const [one, two] = homes;
  if (existsSync(join(one, 'cgroup.procs'))) return one;
  const controllers = join(two, 'cgroup.subtree_control');
  return existsSync(controllers) && /\bpids\b/.test(readFileSync(controllers, 'utf8')) ? two : null;
}

/** The namespace whose first process is `init` may have `more` processes and threads than now. The function that is returned lifts the limit. */
export async function limitProcesses(name: string, init: number, more: number): Promise<() => Promise<void>> {
  const home = homeOfGroups();
  if (home === null) throw new Error(processLimitUnavailable() ?? '');
  const group = join(home, name);
  mkdirSync(group);
  await until(`all of ${name} in its group`, () => inPidNamespaceOf(init).every(({ pid }) => move(pid, group)));
  const now = Number(readFileSync(join(group, 'pids.current'), 'utf8'));
  writeFileSync(join(group, 'pids.max'), String(now + more));
  return async () => {
    writeFileSync(join(group, 'pids.max'), 'max');
    for (const { pid } of inPidNamespaceOf(init)) move(pid, home);
    await until(`the group of ${name} empty`, () => remove(group));
  };
}

/** True: it is there, or has ended. */
function move(pid: number, group: string): boolean {
  if (readFileSync(join(group, 'cgroup.procs'), 'utf8').split('\n').includes(String(pid))) return true;
  try {
    writeFileSync(join(group, 'cgroup.procs'), String(pid));
  } catch {
    return !existsSync(`/proc/${pid}`);
  }
  return true;
}

function remove(group: string): boolean {
  try {
    rmdirSync(group);
    return true;
  } catch {
    return false; // a dying process is still in it
  }
}
