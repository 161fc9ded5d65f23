/** Directories that jobs use, and file systems that do not answer. */
import { binarySize } from '../../../control/size-text.ts';
import type { HostReadings } from '../../../control/readings.ts';
import { fail, unknown, warn, type Check } from '../finding.ts';

const MIN_FREE_PART = 0.02;
const MIN_FREE = 2 ** 30;
const MIN_FREE_FILES = 1000;
/** What ncclrun writes there itself. */
const MIN_CACHE = 200 * 2 ** 20;

/** Of the median. */
const SLOW_READING = 0.5;
/** Less says more of how files are opened than of how they are read. */
const MIN_READ = 2 ** 20;

/** Bytes per second; null: nothing was read that could be compared. */
function readingRate({ data }: HostReadings): number | null {
  return data === null || data.problem !== null || data.bytes < MIN_READ ? null : data.bytes / data.seconds;
}

export const fileChecks: readonly Check[] = [
  {
    id: 'files.hang',
    about: 'mounts that do not answer',
    ofHost: ({ files: { hanging } }) =>
      hanging.map(({ path, fileSystem, source }) =>
        fail(
          `${fileSystem} from ${source} does not answer: whoever touches it hangs`,
          `see its server; umount -l ${path} (as root) lets others go on`,
          path,
        ),
      ),
  },
  {
    id: 'files.space',
    about: 'free space of directories that jobs use',
    ofHost: ({ files: { directories } }) =>
      directories.flatMap(({ use, path, totalBytes, freeBytes, freeFiles }) => {
        if (totalBytes === null || freeBytes === null || path === '/dev/shm') return [];
        const least = use === 'cache' ? MIN_CACHE : Math.min(MIN_FREE, totalBytes / 2);
        const remedy = `free some: du -xh ${path} | sort -h | tail`;
        if (freeBytes < least || freeBytes < MIN_FREE_PART * totalBytes)
          return [warn(`${binarySize(freeBytes)} of ${binarySize(totalBytes)} are free (${use})`, remedy, path)];
        // File systems without a table of files say 0.
        return freeFiles !== null && freeFiles > 0 && freeFiles < MIN_FREE_FILES
          ? [warn(`room for ${freeFiles} more files (${use})`, `remove files: df -i ${path}`, path)]
          : [];
      }),
  },
  {
    id: 'files.writable',
    about: 'whether the directories can be written to',
    ofHost: ({ files: { directories, hanging } }) =>
      directories.flatMap(({ use, path, readOnly, writable, totalBytes }) => {
        if (writable || totalBytes === null || hanging.some((mount) => path.startsWith(mount.path))) return [];
        // A job may be started in a directory that others own.
        if (use === 'working directory' && !readOnly) return [];
        const why = readOnly ? 'is mounted read-only' : 'cannot be written to';
        const remedy = readOnly
          ? 'see dmesg for an error of the disk, and the options of the mount'
          : use === 'cache'
            ? 'set XDG_CACHE_HOME to a directory of yours'
            : 'see its owner and mode';
        return [(readOnly ? fail : warn)(`${use} ${why}`, remedy, path)];
      }),
  },
  {
    id: 'files.exec',
    about: 'whether programs may run from them',
    ofHost: ({ files: { directories } }) =>
      directories.flatMap(({ use, path, noexec }) => {
        if (!noexec || (use !== 'cache' && use !== 'working directory')) return [];
        const remedy =
          use === 'cache'
            ? 'set XDG_CACHE_HOME to a directory on a file system without noexec'
            : 'start from another directory';
        return [fail(`${use} lies on a file system that runs no programs (noexec)`, remedy, path)];
      }),
  },
  {
    id: 'files.data',
    about: '(`--data`) how fast 256 MiB of the data are read',
    ofHost: (readings, hosts) => {
      const { data } = readings;
      if (data === null) return null;
      const { path, problem, bytes } = data;
      if (problem !== null) {
        const isSlow = problem.includes('has not ended');
        const message = isSlow ? `${binarySize(bytes)} were read, then ${problem}` : `it cannot be read: ${problem}`;
        return [fail(message, `see its file server, and ls -l ${path} there`, path)];
      }
      const own = readingRate(readings);
      if (own === null)
        return [unknown(`${binarySize(bytes)} are too little to measure`, 'name larger files with --data', path)];
      const rates = hosts.flatMap((host) => readingRate(host.readings) ?? []).toSorted((one, other) => one - other);
      const usual = rates[rates.length >> 1] ?? own;
      if (own >= SLOW_READING * usual) return [];
      return [
        warn(
          `${(own / 1e6).toPrecision(3)} MB/s are read (median of all: ${(usual / 1e6).toPrecision(3)} MB/s)`,
          `see the network to its file server, and the options of its mount: findmnt -T ${path}`,
          path,
        ),
      ];
    },
  },
];
