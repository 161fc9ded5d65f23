/**
 * How often the kernel has killed a process because memory ran out. Who dies of SIGKILL while this number rises died of that.
 *
 * A control group counts its own (memory.events of version 2, memory.oom_control of version 1: Linux, Documentation/admin-guide/cgroup-v2.rst
 * and cgroup-v1/memory.rst); where it cannot be read the whole machine's count serves (oom_kill in /proc/vmstat).
 */
import { readFileSync } from 'node:fs';

export class MemoryKills {
  readonly #file = counterFile();
  #known: number;

  constructor() {
    this.#known = count(this.#file) ?? 0;
  }

  /** True if there was one that no earlier call has reported. */
  another(): boolean {
    if ((count(this.#file) ?? 0) <= this.#known) return false;
    this.#known += 1;
    return true;
  }
}

function counterFile(): string {
  const groups = read('/proc/self/cgroup')?.split('\n') ?? [];
  const candidates = groups.flatMap((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/u.exec(line) ?? [];
    if (controllers === '') return [`/sys/fs/cgroup${path}/memory.events`];
    return controllers.split(',').includes('memory') ? [`/sys/fs/cgroup/memory${path}/memory.oom_control`] : [];
  });
  return candidates.find((file) => count(file) !== null) ?? '/proc/vmstat';
}

function count(file: string): number | null {
  const found = /^oom_kill (\d+)$/mu.exec(read(file) ?? '');
  return found === null ? null : Number(found[1]);
}

function read(file: string): string | null {
  try {
    return readFileSync(file, 'latin1');
  } catch {
    return null;
  }
}
