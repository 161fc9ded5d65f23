/** Variables and libraries that change what programs do. */
import { fail, note, warn, type Check } from '../finding.ts';

/** They switch off what makes NCCL fast, or say much. */
const slowing: Readonly<Record<string, RegExp>> = {
  NCCL_P2P_DISABLE: /^[^0]/u,
  NCCL_SHM_DISABLE: /^[^0]/u,
  NCCL_IB_DISABLE: /^[^0]/u,
  NCCL_NET_GDR_LEVEL: /^(0|LOC)$/u,
  NCCL_ALGO: /./u,
  NCCL_PROTO: /./u,
  NCCL_DEBUG: /^TRACE$/iu,
  CUDA_LAUNCH_BLOCKING: /^[^0]/u,
};

/** PyTorch 2.4 calls functions that came with it. */
const OLDEST_LIBRARY = [2, 19] as const;

function isOlder(version: string, [major, minor]: readonly [number, number]): boolean {
  const [ownMajor = 0, ownMinor = 0] = version.split('.').map(Number);
  return ownMajor < major || (ownMajor === major && ownMinor < minor);
}

export const environmentChecks: readonly Check[] = [
  {
    id: 'environment.forced',
    about: 'variables that slow NCCL down',
    ofHost: ({ environment: { nccl } }) =>
      nccl.flatMap(({ name, value, source }) =>
        slowing[name]?.test(value) === true
          ? [
              warn(
                `${name}=${value} (${source}) slows programs down`,
                `unset it, or remove it from ${source === 'environment' ? 'the files of the login' : source}`,
              ),
            ]
          : [],
      ),
    alike: {
      what: "NCCL's variables",
      value: ({ environment: { nccl } }) =>
        nccl.length === 0
          ? 'none'
          : nccl
              .map(({ name, value }) => `${name}=${value}`)
              .toSorted()
              .join(' '),
      answer: 'warn',
      remedy: 'set them alike on all hosts, or by ncclrun -x',
    },
  },
  {
    id: 'environment.visible-gpus',
    about: 'whether the login hides GPUs',
    ofHost: ({ environment: { visibleGpus }, gpus: { devices } }) => {
      if (devices === null || devices.length === 0 || visibleGpus === null) return null;
      const shown = visibleGpus.split(',').filter((word) => word.trim() !== '').length;
      if (shown >= devices.length) return [];
      return [
        warn(
          `CUDA_VISIBLE_DEVICES=${visibleGpus} shows ${shown} GPUs of ${devices.length}`,
          'unset it in the files of the login',
        ),
      ];
    },
  },
  {
    id: 'environment.engine',
    about: 'whether ncclrun’s engine can be loaded',
    ofHost: ({ environment: { engineProblem } }) =>
      engineProblem === null
        ? []
        : [
            fail(
              `ncclrun’s engine cannot be loaded: ${engineProblem}`,
              'see ldd of build/ncclrun-perf there, LD_LIBRARY_PATH and LD_PRELOAD',
            ),
          ],
  },
  {
    id: 'slurm.state',
    about: 'whether Slurm gives the host to jobs',
    ofHost: ({ slurm }) => {
      if (slurm === null) return null;
      if (!/DRAIN|DOWN|FAIL|NOT_RESPONDING|\*/u.test(slurm.state)) return [];
      const why = slurm.reason === null ? '' : ` (${slurm.reason})`;
      return [
        warn(
          `Slurm gives it to no job: ${slurm.state}${why}`,
          'once it is mended: scontrol update nodename=NAME state=resume (as root)',
        ),
      ];
    },
  },
  {
    id: 'slurm.gpus',
    about: 'whether Slurm knows as many GPUs as the driver',
    ofHost: ({ slurm, gpus: { devices } }) => {
      if (slurm === null || slurm.gpus === null || devices === null || slurm.gpus === devices.length) return null;
      return [
        fail(
          `Slurm says that it has ${slurm.gpus} GPUs, the driver ${devices.length}`,
          'see nvidia-smi and dmesg for an Xid there, and gres.conf',
        ),
      ];
    },
  },
  {
    id: 'environment.library',
    about: 'which libnccl.so.2 programs find first',
    ofHost: ({ environment: { library, libraryVersion } }) => {
      if (library === null) return [];
      const isOld = libraryVersion !== null && isOlder(libraryVersion, OLDEST_LIBRARY);
      const version = isOld ? ` (${libraryVersion}, older than PyTorch 2.4 and later want)` : '';
      return [
        note(
          `programs find ${library}${version} before their own`,
          'see LD_LIBRARY_PATH and LD_PRELOAD; --engine decides for a job',
        ),
      ];
    },
    alike: {
      what: 'libnccl.so.2 of version',
      value: ({ environment: { libraryVersion } }) => libraryVersion,
      answer: 'note',
      remedy: 'install the same version everywhere: programs without an NCCL of their own load it',
    },
  },
];
