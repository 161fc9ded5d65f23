/** What kind of system a host is, and what its control group and its clock leave to ranks. */
import { binarySize } from '../../../control/size-text.ts';
import { note, warn, type Check } from '../finding.ts';

const MIN_MEMORY_PER_GPU = 8 * 2 ** 30;
const MAX_USED_PART = 0.9;
/** Periods of 100 ms; fewer are within what a start of processes costs. */
const MAX_THROTTLED = 2;
/** Parts of a second per second; crystals are within it. */
const MAX_DRIFT = 1e-4;

export const systemChecks: readonly Check[] = [
  {
    id: 'system.kind',
    about: 'whether it is a container or a virtual machine, as the others are',
    alike: {
      what: 'kind of system',
      value: ({ system: { virtual, container } }) =>
        container ? 'container' : virtual === null ? null : virtual ? 'virtual machine' : 'bare metal',
      answer: 'note',
      remedy: 'name hosts of one kind in the hostfile, if that is not meant',
    },
  },
  {
    id: 'cpu.usable',
    about: 'processors that the login may use (cpuset, affinity)',
    alike: {
      what: 'processors that ranks may use:',
      value: ({ processors: { usable, online } }) =>
        usable >= online ? 'all that are online' : `${usable} of ${online}`,
      answer: 'warn',
      remedy: 'see taskset -p of the login, the cpuset of its slice, and the allocation of the batch system',
    },
  },
  {
    id: 'cgroup.memory',
    about: 'memory that the control group allows',
    ofHost: ({ cgroup: { memoryBytes, memoryUsedBytes }, gpus }) => {
      if (memoryBytes === null) return [];
      const remedy = 'raise memory.max of the slice or container, or ask the batch system for more';
      const wanted = MIN_MEMORY_PER_GPU * (gpus.devices?.length ?? 0);
      if (memoryBytes < wanted)
        return [
          warn(`the control group allows ${binarySize(memoryBytes)}; its GPUs want ${binarySize(wanted)}`, remedy),
        ];
      return memoryUsedBytes !== null && memoryUsedBytes > MAX_USED_PART * memoryBytes
        ? [warn(`${binarySize(memoryUsedBytes)} of ${binarySize(memoryBytes)} of the control group are used`, remedy)]
        : [];
    },
  },
  {
    id: 'cgroup.throttled',
    about: 'whether the control group stops processes now',
    ofHost: ({ cgroup: { throttledMeanwhile }, processors: { overSeconds } }) => {
      if (throttledMeanwhile === null) return null;
      if (throttledMeanwhile <= MAX_THROTTLED) return [];
      const message = `the control group stopped its processes ${throttledMeanwhile} times within ${overSeconds.toFixed(1)} s`;
      return [warn(message, 'raise the limit (cpu.max), or give whole processors instead (cpuset)')];
    },
  },
  {
    id: 'memory.reserved',
    about: 'memory that is set aside as huge pages',
    alike: {
      what: 'memory in reserved huge pages:',
      value: ({ memory: { hugePageBytes } }) => (hugePageBytes === null ? null : binarySize(hugePageBytes)),
      answer: 'note',
      remedy: 'set vm.nr_hugepages alike (as root)',
    },
  },
  {
    id: 'limits.core',
    about: 'whether core files arrive where they should, if they are wanted',
    ofHost: ({ limits: { coreBytes }, kernelSettings: { corePattern, corePlaceExists } }) => {
      if (corePattern === null || coreBytes === null) return null;
      if (coreBytes === 0 || corePlaceExists !== false) return [];
      return [
        note(
          `core files get lost: kernel.core_pattern is ${corePattern}, which does not exist`,
          'sysctl -w kernel.core_pattern=core.%p (as root)',
        ),
      ];
    },
  },
  {
    id: 'time.steps',
    about: 'clocks that are set while jobs run',
    ofHost: ({ clock: { steppedMs }, processors: { overSeconds } }) => {
      if (steppedMs === null) return null;
      if (Math.abs(steppedMs) <= MAX_DRIFT * overSeconds * 1000) return [];
      return [
        note(
          `its clock was set ${Math.abs(steppedMs).toFixed(1)} ms ${steppedMs > 0 ? 'forward' : 'back'} while doctor looked`,
          'see chronyc tracking: a daemon should slew the clock, and step it at its start only',
        ),
      ];
    },
  },
];
