/**
 * How often the kernel has killed a process because memory ran out. Who dies of SIGKILL while this number rises died of that.
 *
 * A control group counts its own (memory.events of version 2, memory.oom_control of version 1: Linux, Documentation/admin-guide/cgroup-v2.rst
 * and cgroup-v1/memory.rst); where it cannot be read the whole machine's count serves (oom_kill in /proc/vmstat).
 */
import { join } from 'node:path';
import { readText } from '../topology/system-files.ts';

export class MemoryKills {
  readonly #file: string;
  #known: number;

  /** `root` is `/`, or a test's directory. */
  constructor(root = '/') {
    this.#file = counterFile(root);
    this.#known = count(this.#file) ?? 0;
  }

  /** True if there was one that no earlier call has reported. */
  another(): boolean {
    if ((count(this.#file) ?? 0) <= this.#known) return false;
    this.#known += 1;
    return true;
  }
}

function counterFile(root: string): string {
  const groups = readText(root, 'proc/self/cgroup').split('\n');
  const candidates = groups.flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/u.exec(line) ?? [];
    if (controllers === '') return [`sys/fs/cgroup${path}/memory.events`];
    return controllers.split(',').includes('memory') ? [`sys/fs/cgroup/memory${path}/memory.oom_control`] : [];
  });
  const files = candidates.map((file) => join(root, file));
  return files.find((file) => count(file) !== null) ?? join(root, 'proc/vmstat');
}

function count(file: string): number | null {
  const found = /^oom_kill (\d+)$/mu.exec(readText('/', file));
  return found === null ? null : Number(found[1]);
}
