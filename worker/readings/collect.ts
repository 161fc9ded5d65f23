/** All readings of this host, at once, each with its own limit. */
import { tmpdir } from 'node:os';
import { cacheDirectory } from '../../control/cache-directory.ts';
import type { HostCounters, HostReadings } from '../../control/readings.ts';
import { hostFacts } from '../agent/host-facts.ts';
import { readActivity } from './activity.ts';
import { clockDistance, readClock } from './clock.ts';
import { readData } from './data.ts';
import { engineProblem } from './engine.ts';
import { readEnvironment } from './environment.ts';
import { readFiles } from './files.ts';
import { readGpus } from './gpus.ts';
import { readImex } from './imex.ts';
import { readKernelLog } from './kernel-log.ts';
import { readCgroup, readKernelSettings, readLimits } from './limits.ts';
import { readLogin } from './login.ts';
import { readMemory } from './memory.ts';
import { askedLinks, readBonds, readInfiniband, readInterfaces, readVerbsDevices } from './network.ts';
import { readPci, readPciBus } from './pci.ts';
import { readRoce } from './roce.ts';
import { readSlurm } from './slurm.ts';
import { readSystem } from './system.ts';

const TOOL_MS = 3000;

interface CollectOptions {
  readonly version: string;
  /** How long processors and memory are watched. */
  readonly watchMs: number;
  /** `/`, or a recorded tree's: of what /proc, /sys, /dev, /etc and /run have. */
  readonly root?: string;
  /** Files whose reading is measured. */
  readonly data?: string | null;
}

export async function collectReadings({
  version,
  watchMs,
  root = '/',
  data = null,
}: CollectOptions): Promise<HostReadings> {
  const started = performance.now();
  const unread: Record<string, string> = {};
  const cache = cacheDirectory(process.env);
  const used = [
    ['working directory', process.cwd()],
    ['temporary files', tmpdir()],
    ['shared memory', '/dev/shm'],
    ...(cache === null ? [] : [['cache', cache] as const]),
  ] as const;
  const clockBefore = clockDistance();
  const throttledBefore = readCgroup(root).throttledPeriods;
  const infiniband = readInfiniband(root);
  const [{ swappedPages, ...activity }, gpus, files, links, slurm, problem, roce, login, read] = await Promise.all([
    readActivity(root, watchMs),
    readGpus(root, (why) => (unread['gpus'] = why)),
    readFiles(used),
    root === '/' ? askedLinks() : [],
    readSlurm(root),
    engineProblem(),
    readRoce(root, infiniband),
    root === '/' ? readLogin() : null,
    data === null ? null : readData(data),
  ]);
  const cgroup = readCgroup(root);
  const readings = {
    schemaVersion: 1,
    version,
    system: readSystem(root),
    ...activity,
    memory: { ...readMemory(root), swappedPages },
    cgroup: { ...cgroup, throttledMeanwhile: difference(throttledBefore, cgroup.throttledPeriods) },
    limits: readLimits(root),
    kernelSettings: readKernelSettings(root),
    interfaces: readInterfaces(root, links),
    reachable: root === '/' ? [...hostFacts(false, false).addresses] : [],
    infiniband,
    roce,
    verbsDevices: readVerbsDevices(root),
    pci: readPci(root),
    pciBus: readPciBus(root),
    imex: await readImex(root, gpus),
    kernelLog: readKernelLog(root),
    slurm,
    bonds: readBonds(root),
    gpus,
    files,
    environment: { ...readEnvironment(root, process.env), engineProblem: problem },
    data: read,
    login,
    unread,
  } as const;
  const clock = await readClock(root, TOOL_MS, clockBefore);
  return { ...readings, seconds: (performance.now() - started) / 1000, clock };
}

function difference(before: number | null, after: number | null): number | null {
  return before === null || after === null ? null : Math.max(0, after - before);
}

/** What may grow under load. */
export async function collectCounters(root = '/'): Promise<HostCounters> {
  const [gpus, links] = await Promise.all([readGpus(root, () => undefined), root === '/' ? askedLinks() : []]);
  const memory = { ...readMemory(root), swappedPages: null };
  return {
    interfaces: readInterfaces(root, links),
    infiniband: readInfiniband(root),
    pci: readPci(root),
    gpus,
    memory,
  };
}
