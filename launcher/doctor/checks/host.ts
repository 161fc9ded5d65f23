/** System, processors, memory and processes of a host. */
import { binarySize } from '../../../control/size-text.ts';
import type { HostReadings } from '../../../control/readings.ts';
import { fail, note, warn, type Check } from '../finding.ts';

/** Less is a matter of how long an answer takes, and of what runs beside. */
const MAX_USED_PART = 0.3;
const MAX_STOLEN = 0.02;
/** Less is within the precision of the kernel's counters, and of a moment. */
const MIN_STOLEN_SECONDS = 0.2;
const TIMES_OTHERS = 3;
const MIN_MEMORY_PART = 0.1;
const MIN_MEMORY_PER_GPU = 8 * 2 ** 30;
const MAX_ZOMBIES = 1000;
const MAX_PROCESS_PART = 0.8;

const percent = (part: number): string => `${Number((part * 100).toPrecision(2))} %`;

function machineKey({ bootId, machineName }: HostReadings['system']): string {
  return `${bootId} ${machineName}`;
}

export const hostChecks: readonly Check[] = [
  {
    id: 'ncclrun.version',
    about: 'the version of ncclrun',
    alike: {
      what: 'ncclrun',
      value: ({ version }) => version,
      answer: 'fail',
      remedy: 'install the same version everywhere, or let ncclrun copy itself (--stage)',
    },
  },
  {
    id: 'name.unique',
    about: 'whether two entries of the hostfile are one machine',
    ofHost: ({ system }, hosts) => {
      const twins = hosts
        .filter(({ readings }) => machineKey(readings.system) === machineKey(system))
        .map(({ name }) => name);
      if (twins.length < 2) return [];
      return [fail(`${twins.join(' and ')} are one machine`, 'name it once, with all of its slots')];
    },
  },
  {
    id: 'os.same',
    about: 'kernel, distribution and glibc',
    alike: {
      what: 'system',
      value: ({ system: { distribution, kernel, libc } }) =>
        [distribution, libc === null ? '' : `glibc ${libc}`, kernel === '' ? '' : `kernel ${kernel}`]
          .filter((text) => text !== '')
          .join(', '),
      answer: 'note',
      remedy: 'updates that have reached some hosts only explain much',
    },
  },
  {
    id: 'cpu.count',
    about: 'processors that are present and online',
    ofHost: ({ processors: { online, present } }) =>
      online >= present
        ? []
        : [warn(`${online} of ${present} processors are online`, 'set them online: chcpu -e (as root)')],
    alike: {
      what: 'processors',
      value: ({ processors }) => String(processors.online),
      answer: 'warn',
      remedy: 'see chcpu and the settings of the firmware',
    },
  },
  {
    id: 'cpu.governor',
    about: 'whether processors run at full clock speed',
    ofHost: ({ processors: { governors } }) => {
      if (governors.length === 0) return null;
      const others = governors.filter((name) => name !== 'performance');
      if (others.length === 0) return [];
      const remedy = 'cpupower frequency-set -g performance (as root)';
      return [warn(`the frequency governor is ${others.join(', ')}, usual on servers: performance`, remedy)];
    },
  },
  {
    id: 'cpu.load',
    about: 'what uses the processors before a job runs',
    ofHost: ({ processors: { busiest, usable } }) => {
      const cores = busiest.reduce((sum, process) => sum + process.cores, 0);
      if (cores / usable <= MAX_USED_PART) return [];
      const names = busiest.map((one) => `${one.command} (process ${one.pid}, ${one.cores} cores)`);
      return [
        warn(
          `processes use ${cores.toFixed(1)} of ${usable} cores: ${names.join(', ')}`,
          'end them, or wait for them: they slow down every rank here',
        ),
      ];
    },
  },
  {
    id: 'cpu.stolen',
    about: 'processor time that the hypervisor gives to others',
    ofHost: ({ processors }, hosts) => {
      const { stolen, online, overSeconds } = processors;
      if (stolen === null) return null;
      if (stolen <= MAX_STOLEN || stolen * online * overSeconds < MIN_STOLEN_SECONDS) return [];
      const others = hosts.flatMap(({ readings }) =>
        readings.processors === processors ? [] : (readings.processors.stolen ?? []),
      );
      const usual = others.toSorted((one, other) => one - other)[others.length >> 1] ?? 0;
      const message = `the hypervisor gave ${percent(stolen)} of the time to others (usual: none)`;
      const remedy = 'move the machine to a host that is not overcommitted';
      return [(stolen > TIMES_OTHERS * usual ? warn : note)(message, remedy)];
    },
  },
  {
    id: 'memory.free',
    about: 'free main memory',
    ofHost: ({ memory: { totalBytes, availableBytes }, gpus }) => {
      if (totalBytes === null || availableBytes === null) return null;
      const needed = Math.min(totalBytes / 2, MIN_MEMORY_PER_GPU * (gpus.devices?.length ?? 0));
      if (availableBytes >= Math.max(MIN_MEMORY_PART * totalBytes, needed)) return [];
      return [
        warn(
          `${binarySize(availableBytes)} of ${binarySize(totalBytes)} of memory are free`,
          'see what uses it: ps aux --sort=-rss | head',
        ),
      ];
    },
    alike: {
      what: 'memory',
      value: ({ memory: { totalBytes } }) =>
        totalBytes === null ? null : binarySize(Number((totalBytes / 2 ** 30).toPrecision(2)) * 2 ** 30),
      answer: 'warn',
      remedy: 'see dmidecode -t memory (as root): a module may have failed',
    },
  },
  {
    id: 'memory.swap',
    about: 'whether memory is swapped in and out',
    ofHost: ({ memory: { swapUsedBytes, swappedPages } }) => {
      if (swapUsedBytes === null || swappedPages === null) return null;
      if (swapUsedBytes === 0 || swappedPages === 0) return [];
      return [
        warn(
          `${binarySize(swapUsedBytes)} are swapped out, and ${swappedPages} pages moved within a moment`,
          'free memory, or run fewer ranks here',
        ),
      ];
    },
  },
  {
    id: 'memory.ecc',
    about: 'errors of the main memory',
    ofHost: ({ memory: { uncorrectedErrors, correctedErrors } }) => {
      if (uncorrectedErrors === null) return null;
      if (uncorrectedErrors > 0)
        return [
          fail(
            `main memory had ${uncorrectedErrors} errors that could not be corrected`,
            'take the host out of use, and replace the module that ras-mc-ctl --errors names (as root)',
          ),
        ];
      return correctedErrors !== null && correctedErrors > 100
        ? [note(`main memory has corrected ${correctedErrors} errors since the host started`)]
        : [];
    },
  },
  {
    id: 'memory.numa',
    about: 'NUMA nodes and their memory',
    alike: {
      what: 'NUMA nodes',
      value: ({ memory: { numaNodeBytes } }) =>
        numaNodeBytes.length === 0
          ? null
          : `${numaNodeBytes.length} with ${numaNodeBytes.map((bytes) => `${Math.round(bytes / 2 ** 33) * 8} GiB`).join(', ')}`,
      answer: 'warn',
      remedy: "see the firmware's settings of NUMA (NPS, sub-NUMA clustering), and whether a module has failed",
    },
  },
  {
    id: 'process.uninterruptible',
    about: 'processes that nothing can end',
    ofHost: ({ processes: { uninterruptible } }) =>
      uninterruptible.map(({ pid, command, place }) =>
        warn(
          `${command} (process ${pid}) waits${place === null ? '' : ` in ${place}`} and cannot be ended`,
          'see the file server or the driver that it waits for; if it is nvidia, restart the host',
        ),
      ),
  },
  {
    id: 'process.count',
    about: 'room for processes',
    ofHost: ({ processes: { zombies, total, maximum }, cgroup: { tasks, tasksNow } }) => [
      ...(zombies > MAX_ZOMBIES
        ? [warn(`${zombies} zombies: a process does not collect its children`, 'end their parent (ps -eo ppid,stat)')]
        : []),
      ...(maximum !== null && total > MAX_PROCESS_PART * maximum
        ? [warn(`${total} processes of at most ${maximum}`, 'sysctl -w kernel.pid_max=4194304 (as root)')]
        : []),
      ...(tasks !== null && tasksNow !== null && tasksNow > MAX_PROCESS_PART * tasks
        ? [
            warn(
              `${tasksNow} tasks of at most ${tasks} in this control group`,
              'raise TasksMax of the slice or service',
            ),
          ]
        : []),
    ],
  },
  {
    id: 'cgroup.processors',
    about: 'limits of the control group',
    ofHost: ({ cgroup: { cores }, processors: { usable } }) =>
      cores === null || cores >= usable
        ? []
        : [
            warn(
              `the control group gives ${cores} cores' worth of time to ${usable} processors: ranks are stopped in between`,
              'remove the limit (cpu.max), or give whole processors instead (cpuset)',
            ),
          ],
  },
];
