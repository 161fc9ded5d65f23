/** What processors and memory do in a short time: two readings of the kernel's counters. */
import { readlinkSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { HostReadings } from '../../control/readings.ts';
import { listDirectory, parseCpuList, readText } from '../topology/system-files.ts';
import { namedNumbers, numberIn, numberOf } from './whole-numbers.ts';

/** Processes that used more than this part of a core are named, so many at most. */
const BUSY_PART = 0.3;
const MAX_NAMED = 3;
/** Places of /proc/stat's line of a CPU, in ticks of 10 ms: user, nice, system, idle, iowait, irq, softirq, steal. */
const [IDLE, IOWAIT, STEAL] = [3, 4, 7];
const TICKS_PER_SECOND = 100;

interface SampledProcess {
  readonly command: string;
  readonly state: string;
  readonly parent: number;
  /** That it used, all threads together. */
  readonly ticks: number;
  /** In which its first thread could have run, and had no processor. */
  readonly waitedSeconds: number;
}

interface Sample {
  readonly ticks: readonly number[];
  readonly swapped: number | null;
  readonly processes: ReadonlyMap<number, SampledProcess>;
  readonly seconds: number;
}

type Activity = Pick<HostReadings, 'processors' | 'processes'> & { readonly swappedPages: number | null };

/** Takes `milliseconds`. */
export async function readActivity(root: string, milliseconds: number): Promise<Activity> {
  const before = sample(root);
  await sleep(milliseconds);
  const now = sample(root);
  return {
    processors: processorsBetween(root, before, now),
    processes: processesBetween(root, before, now),
    swappedPages: before.swapped === null || now.swapped === null ? null : now.swapped - before.swapped,
  };
}

function sample(root: string): Sample {
  const paging = namedNumbers(readText(root, 'proc/vmstat'));
  const swapped = paging.has('pswpin') ? (paging.get('pswpin') ?? 0) + (paging.get('pswpout') ?? 0) : null;
  const ids = listDirectory(root, 'proc').filter((name) => /^[0-9]+$/u.test(name));
  const processes = ids.flatMap((id) => {
    const stat = readText(root, `proc/${id}/stat`);
    const command = /\((.*)\)/su.exec(stat)?.[1];
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    if (command === undefined) return [];
    const ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
    const [, waited = 0] = readText(root, `proc/${id}/schedstat`).split(' ').map(Number);
    const [state = '', parent] = fields;
    const found = { command: command.slice(0, 64), state, parent: Number(parent), ticks, waitedSeconds: waited / 1e9 };
    return [[Number(id), found] as const];
  });
  const [, line = ''] = /^cpu\s+(.*)$/mu.exec(readText(root, 'proc/stat')) ?? [];
  return {
    ticks: line.split(/\s+/u).map(Number),
    swapped,
    processes: new Map(processes),
    seconds: performance.now() / 1000,
  };
}

function processorsBetween(root: string, before: Sample, now: Sample): HostReadings['processors'] {
  const spent = now.ticks.map((ticks, place) => ticks - (before.ticks[place] ?? 0));
  const all = spent.slice(0, STEAL + 1).reduce((sum, ticks) => sum + ticks, 0);
  const idle = (spent[IDLE] ?? 0) + (spent[IOWAIT] ?? 0);
  const stolen = spent[STEAL] ?? 0;
  const overSeconds = now.seconds - before.seconds;
  const own = ownFamily(now.processes);
  const busiest = [...now.processes].flatMap(([pid, { command, ticks, waitedSeconds }]) => {
    const earlier = before.processes.get(pid);
    if (earlier === undefined || own(pid)) return [];
    // On a host with more such processes than processors each of them gets a part of what it wants.
    const wanted = (ticks - earlier.ticks) / TICKS_PER_SECOND + waitedSeconds - earlier.waitedSeconds;
    const cores = wanted / overSeconds;
    return cores >= BUSY_PART
      ? [{ pid, command: programName(root, pid, command), cores: Math.round(cores * 100) / 100 }]
      : [];
  });
  const cpus = listDirectory(root, 'sys/devices/system/cpu').filter((name) => /^cpu[0-9]+$/u.test(name));
  const governors = cpus.map((cpu) => readText(root, `sys/devices/system/cpu/${cpu}/cpufreq/scaling_governor`));
  return {
    online: parseCpuList(readText(root, 'sys/devices/system/cpu/online')).length,
    present: parseCpuList(readText(root, 'sys/devices/system/cpu/present')).length,
    usable: availableParallelism(),
    governors: [...new Set(governors.filter((name) => name !== ''))],
    load: numberOf(readText(root, 'proc/loadavg')),
    stolen: all > 0 ? stolen / all : null,
    used: all > 0 ? (all - idle - stolen) / all : null,
    overSeconds,
    busiest: busiest.toSorted((one, other) => other.cores - one.cores).slice(0, MAX_NAMED),
  };
}

/** Node 24 and later call their first thread so, whatever the program is. */
function programName(root: string, pid: number, command: string): string {
  if (command !== 'MainThread') return command;
  try {
    return basename(readlinkSync(join(root, `proc/${pid}/exe`)));
  } catch {
    return command; // another user's, or over
  }
}

/** This process, those that started it, and those that it has started: what looks is not what is looked for. */
function ownFamily(processes: Sample['processes']): (pid: number) => boolean {
  const parentsOf = (pid: number): number[] => {
    const parent = processes.get(pid)?.parent ?? 0;
    return parent <= 1 ? [] : [parent, ...parentsOf(parent)];
  };
  const parents = parentsOf(process.pid);
  return (pid) => pid === process.pid || parents.includes(pid) || parentsOf(pid).includes(process.pid);
}

function processesBetween(root: string, before: Sample, now: Sample): HostReadings['processes'] {
  const stuck = [...now.processes].filter(
    ([pid, { state }]) => state === 'D' && before.processes.get(pid)?.state === 'D',
  );
  return {
    total: now.processes.size,
    maximum: numberIn(root, 'proc/sys/kernel/pid_max'),
    zombies: [...now.processes.values()].filter(({ state }) => state === 'Z').length,
    uninterruptible: stuck.slice(0, 16).map(([pid, { command }]) => {
      const place = readText(root, `proc/${pid}/wchan`);
      return { pid, command, place: /^[a-z_]\w*$/iu.test(place) ? place : null };
    }),
  };
}
