/** Limits as a rank would meet them, and settings of the kernel. */
import { binarySize } from '../../../control/size-text.ts';
import { fail, note, unknown, warn, type Check } from '../finding.ts';

const MIN_LOCKED = 64 * 2 ** 30;
const MIN_FILES = 65_536;
/** A group of hosts has one way of starting ranks, and laptops have fewer of all: below this nobody registers memory or opens many files. */
const MIN_FILES_AT_ALL = 1024;
const MIN_SHARED = 2 ** 30;
const MIN_FREE_SHARED_PART = 0.1;
const MIN_PORTS = 8192;
const MIN_PROCESSES = 4096;
const MIN_BUFFER = 4 * 2 ** 20;
const FAST_MBPS = 10_000;

const raise = 'raise it in /etc/security/limits.conf, the sshd or slurmd service';

export const limitChecks: readonly Check[] = [
  {
    id: 'limits.locked-memory',
    about: 'memory that may be locked, which InfiniBand and RoCE need',
    ofHost: ({ limits: { lockedMemoryBytes }, infiniband }) => {
      if (lockedMemoryBytes === null) return null;
      if (lockedMemoryBytes === 'unlimited' || lockedMemoryBytes >= MIN_LOCKED || infiniband.length === 0) return [];
      return [
        fail(
          `at most ${binarySize(lockedMemoryBytes)} may be locked, wanted: unlimited`,
          `${raise}: memlock unlimited`,
        ),
      ];
    },
    alike: {
      what: 'locked memory at most',
      value: ({ limits: { lockedMemoryBytes } }) =>
        lockedMemoryBytes === null || lockedMemoryBytes === 'unlimited'
          ? lockedMemoryBytes
          : binarySize(lockedMemoryBytes),
      answer: 'warn',
      remedy: `${raise}: memlock unlimited`,
    },
  },
  {
    id: 'limits.open-files',
    about: 'open files',
    ofHost: ({ limits: { openFiles } }) => {
      if (openFiles === null) return null;
      if (openFiles === 'unlimited' || openFiles >= MIN_FILES) return [];
      const message = `at most ${openFiles} open files; jobs of hundreds of ranks want ${MIN_FILES}`;
      return [
        openFiles <= MIN_FILES_AT_ALL
          ? warn(message, `${raise}: nofile 65536`)
          : note(message, `${raise}: nofile 65536`),
      ];
    },
    alike: {
      what: 'open files at most',
      value: ({ limits: { openFiles } }) => (openFiles === null ? null : String(openFiles)),
      answer: 'warn',
      remedy: `${raise}: nofile`,
    },
  },
  {
    id: 'limits.processes',
    about: 'processes and threads of this user',
    ofHost: ({ limits: { processes }, gpus, processors: { usable } }) => {
      if (processes === null || processes === 'unlimited') return processes === null ? null : [];
      // A rank for each GPU, with loaders of data, each with a thread for some processors.
      const wanted = Math.max(MIN_PROCESSES, (gpus.devices?.length ?? 0) * 4 * usable);
      if (processes >= wanted) return [];
      return [
        warn(
          `at most ${processes} processes and threads; ranks with their loaders of data want ${wanted}`,
          `${raise}: nproc`,
        ),
      ];
    },
  },
  {
    id: 'limits.stack',
    about: 'the stack of threads',
    ofHost: ({ limits: { stackBytes } }) =>
      stackBytes !== 'unlimited'
        ? []
        : [
            warn(
              'the stack is unlimited, so glibc gives threads 2 MiB of it, too little for some programs',
              'ulimit -s 8192',
            ),
          ],
  },
  {
    id: 'shared-memory.size',
    about: '/dev/shm, which NCCL and data loaders use',
    ofHost: ({ files: { directories } }) => {
      const shared = directories.find(({ path }) => path === '/dev/shm');
      if (shared === undefined || shared.totalBytes === null || shared.freeBytes === null)
        return [
          fail(
            'there is no /dev/shm',
            'mount it: mount -t tmpfs tmpfs /dev/shm (as root); in a container --shm-size',
            '/dev/shm',
          ),
        ];
      const enough = shared.freeBytes >= Math.min(MIN_SHARED, MIN_FREE_SHARED_PART * shared.totalBytes);
      if (enough && shared.totalBytes >= MIN_SHARED) return [];
      const message = `${binarySize(shared.freeBytes)} of ${binarySize(shared.totalBytes)} are free`;
      const remedy = enough
        ? 'mount -o remount,size=50% /dev/shm (as root); in a container --shm-size'
        : 'remove what nobody uses (ls -l /dev/shm), or make it larger: mount -o remount,size=50% /dev/shm (as root)';
      return [(enough ? warn : fail)(message, remedy, '/dev/shm')];
    },
  },
  {
    id: 'shared-memory.stale',
    about: 'what ended programs have left in /dev/shm',
    ofHost: ({ files: { staleSharedMemory } }) =>
      staleSharedMemory.files === 0
        ? []
        : [
            note(
              `${staleSharedMemory.files} files of ended programs, ${binarySize(staleSharedMemory.bytes)}`,
              'once nobody runs a job here: rm /dev/shm/nccl-* /dev/shm/torch_*',
              '/dev/shm',
            ),
          ],
  },
  {
    id: 'login.remove-ipc',
    about: 'whether a logout removes shared memory of jobs',
    ofHost: ({ kernelSettings: { removesIpc } }) =>
      removesIpc
        ? [
            warn(
              'systemd-logind removes shared memory when its user logs out (RemoveIPC=yes)',
              'set RemoveIPC=no in /etc/systemd/logind.conf',
            ),
          ]
        : [],
  },
  {
    id: 'system.ptrace',
    about: 'whether stacks of ranks can be read',
    ofHost: ({ kernelSettings: { ptraceScope } }) =>
      ptraceScope !== null && ptraceScope > 1
        ? [
            note(
              `kernel.yama.ptrace_scope is ${ptraceScope}: verdicts have no stacks`,
              'sysctl -w kernel.yama.ptrace_scope=1 (as root)',
            ),
          ]
        : [],
  },
  {
    id: 'network.ports',
    about: 'ports for outgoing connections',
    ofHost: ({ kernelSettings: { portRange } }) => {
      if (portRange === null) return null;
      const [from, to] = portRange;
      if (to - from >= MIN_PORTS) return [];
      return [
        warn(
          `${to - from + 1} ports for connections (${from} to ${to})`,
          "sysctl -w net.ipv4.ip_local_port_range='32768 60999' (as root)",
        ),
      ];
    },
  },
  {
    id: 'network.buffers',
    about: "TCP's greatest buffers",
    ofHost: ({ kernelSettings: { receiveBufferBytes, sendBufferBytes }, interfaces }) => {
      const isFast = interfaces.some(({ up, hardware, speedMbps }) => up && hardware && (speedMbps ?? 0) >= FAST_MBPS);
      if (!isFast || receiveBufferBytes === null || sendBufferBytes === null) return null;
      const small = Math.min(receiveBufferBytes, sendBufferBytes);
      if (small >= MIN_BUFFER) return [];
      const remedy = `sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432' net.ipv4.tcp_wmem='4096 65536 33554432' (as root)`;
      return [warn(`buffers of TCP grow to ${binarySize(small)} only, too little for 10 Gb/s and more`, remedy)];
    },
  },
  {
    id: 'gpu.unified-memory',
    about: 'the device file that CUDA needs',
    ofHost: ({ gpus }) => {
      if (gpus.driver === null) return null;
      return gpus.unifiedMemory
        ? []
        : [fail('there is no /dev/nvidia-uvm, so CUDA cannot start', 'nvidia-modprobe -u -c 0 (as root)')];
    },
  },
  {
    id: 'time.synchronised',
    about: 'whether somebody keeps the clock right',
    ofHost: ({ clock: { synchronised }, system }) => {
      if (synchronised === null)
        return system.container
          ? null
          : [unknown('nobody tells whether the clock is synchronised', 'see timedatectl or chronyc tracking')];
      return synchronised ? [] : [warn('the clock is not synchronised', 'start chrony, ntpd or systemd-timesyncd')];
    },
  },
];
