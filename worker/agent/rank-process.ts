/** What the kernel says about a rank's process, from /proc and its cgroup. Nothing here stops or slows the process. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import type { ProcessSleep, ProcessState } from '../../control/messages/hang.ts';
import { printable } from '../../control/printable.ts';

/** Linux counts CPU time in hundredths of a second for programs, whatever its own tick. */
const MS_PER_TICK = 10;
const MAX_THREADS = 64;
const MAX_FILE = 300;

const STATES: Readonly<Record<string, ProcessState>> = {
  R: 'running',
  S: 'sleeping',
  I: 'sleeping',
  D: 'uninterruptible',
  T: 'stopped',
  t: 'stopped',
  Z: 'zombie',
  X: 'gone',
};

interface SystemCall {
  readonly name: string;
  /** Its first argument is a file descriptor. */
  readonly file: boolean;
}

/** Number → call in which programs sleep, on x86-64 and on arm64. */
const CALLS: Readonly<Partial<Record<string, Readonly<Record<number, string>>>>> = {
  x64: {
    0: 'read.',
    1: 'write.',
    7: 'poll',
    16: 'ioctl.',
    17: 'pread64.',
    18: 'pwrite64.',
    19: 'readv.',
    20: 'writev.',
    23: 'select',
    34: 'pause',
    35: 'nanosleep',
    43: 'accept.',
    44: 'sendto.',
    45: 'recvfrom.',
    46: 'sendmsg.',
    47: 'recvmsg.',
    61: 'wait4',
    72: 'fcntl.',
    73: 'flock.',
    74: 'fsync.',
    75: 'fdatasync.',
    202: 'futex',
    230: 'clock_nanosleep',
    232: 'epoll_wait',
    257: 'openat',
    271: 'ppoll',
    281: 'epoll_pwait',
  },
  arm64: {
    22: 'epoll_pwait',
    25: 'fcntl.',
    29: 'ioctl.',
    32: 'flock.',
    56: 'openat',
    63: 'read.',
    64: 'write.',
    65: 'readv.',
    66: 'writev.',
    67: 'pread64.',
    68: 'pwrite64.',
    72: 'pselect6',
    73: 'ppoll',
    82: 'fsync.',
    83: 'fdatasync.',
    98: 'futex',
    101: 'nanosleep',
    115: 'clock_nanosleep',
    202: 'accept.',
    206: 'sendto.',
    207: 'recvfrom.',
    211: 'sendmsg.',
    212: 'recvmsg.',
    260: 'wait4',
  },
};

interface ProcessFacts {
  readonly state: ProcessState;
  readonly cpuMs: number;
  readonly throttled: number | null;
}

export function processFacts(pid: number): ProcessFacts {
  const stat = read(`/proc/${pid}/stat`);
  if (stat === null) return { state: 'gone', cpuMs: 0, throttled: null };
  const fields = fieldsOf(stat);
  const ticks = Number(fields[11] ?? 0) + Number(fields[12] ?? 0);
  const own = STATES[fields[0] ?? ''] ?? 'unknown';
  const asleep = own === 'sleeping' && waitingThread(pid) !== pid ? 'uninterruptible' : own;
  const state = (asleep === 'sleeping' || asleep === 'uninterruptible') && isFrozen(pid) ? 'frozen' : asleep;
  return { state, cpuMs: Number.isFinite(ticks) ? ticks * MS_PER_TICK : 0, throttled: throttledPeriods(pid) };
}

/** What a process sleeps in: the call of its first thread, or of one that no signal wakes. */
export function sleepOf(pid: number): ProcessSleep | null {
  const task = `/proc/${pid}/task/${waitingThread(pid)}`;
  const [number = '', argument = ''] = (read(`${task}/syscall`) ?? '').split(' ');
  const call = systemCall(number);
  const place = (read(`${task}/wchan`) ?? '').trim();
  const channel = /^[a-z_][\w.]*$/i.test(place) ? place.slice(0, 100) : null;
  if (call !== null) return { call: call.name, file: call.file ? fileOf(pid, argument) : null, channel };
  return channel === null ? null : { call: channel, file: null, channel };
}

/** The first thread, unless another one is in uninterruptible sleep. */
function waitingThread(pid: number): number {
  const isUninterruptible = (thread: number): boolean =>
    fieldsOf(read(`/proc/${pid}/task/${thread}/stat`) ?? '')[0] === 'D';
  if (isUninterruptible(pid)) return pid;
  const threads = list(`/proc/${pid}/task`).slice(0, MAX_THREADS).map(Number);
  return threads.find(isUninterruptible) ?? pid;
}

function systemCall(number: string): SystemCall | null {
  const name = /^\d+$/.test(number) ? CALLS[process.arch]?.[Number(number)] : undefined;
  return name === undefined ? null : { name: name.replace('.', ''), file: name.endsWith('.') };
}

function fileOf(pid: number, descriptor: string): string | null {
  try {
    return printable(readlinkSync(`/proc/${pid}/fd/${Number(descriptor)}`)).slice(0, MAX_FILE);
  } catch {
    return null;
  }
}

/** The freezer of its control group holds it: version 2 shows such a process as asleep, version 1 as in uninterruptible sleep. */
function isFrozen(pid: number): boolean {
  return (read(`/proc/${pid}/cgroup`) ?? '').split('\n').some((line) => {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    if (controllers === 'freezer') return read(`/sys/fs/cgroup/freezer${path}/freezer.state`)?.trim() === 'FROZEN';
    return controllers === '' && path !== '' && /^frozen 1$/m.test(read(`/sys/fs/cgroup${path}/cgroup.events`) ?? '');
  });
}

/** CPU time that this machine's hypervisor gave to others, over all CPUs; null: nobody knows. */
export function stolenMs(): number | null {
  const ticks = Number(/^cpu +(?:\d+ +){7}(\d+)/.exec(read('/proc/stat') ?? '')?.[1] ?? Number.NaN);
  return Number.isFinite(ticks) ? ticks * MS_PER_TICK : null;
}

/** How often the cgroup of the process ran out of its share of CPU time. */
function throttledPeriods(pid: number): number | null {
  for (const line of (read(`/proc/${pid}/cgroup`) ?? '').split('\n')) {
    const [, controllers = '', path = ''] = /^\d+:([^:]*):(.*)$/.exec(line) ?? [];
    const root = controllers === '' ? '/sys/fs/cgroup' : '/sys/fs/cgroup/cpu';
    if (controllers !== '' && !controllers.split(',').includes('cpu')) continue;
    const [, periods] = /^nr_throttled (\d+)$/m.exec(read(`${root}${path}/cpu.stat`) ?? '') ?? [];
    if (periods !== undefined) return Number(periods);
  }
  return null;
}

/** Those behind the name, which may have spaces and parentheses: the state is the first. */
function fieldsOf(stat: string): readonly string[] {
  return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
}

function read(path: string): string | null {
  try {
    return readFileSync(path, 'latin1');
  } catch {
    return null;
  }
}

function list(path: string): readonly string[] {
  try {
    return readdirSync(path);
  } catch {
    return [];
  }
}
