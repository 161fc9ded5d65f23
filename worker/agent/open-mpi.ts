/**
 * Recognises programs of Open MPI. That a process has loaded the library is not enough: some builds of torch do, and use no MPI. The program itself
 * must be linked with it, or have loaded mpi4py.
 */
import { readFileSync } from 'node:fs';
import { neededLibraries } from './needed-libraries.ts';

/** Libraries that only Open MPI has, in its versions 1.10 to 5; libmpi.so.12 is MPICH's and Intel's. */
const OPEN_MPI = /^(libmpi\.so\.(?!12)\d+|libopen-rte\.so|libopen-pal\.so|libprrte\.so)/u;
const MPI4PY = /\/mpi4py\/MPI\.[^/\n]*\.so$/mu;
/** Maximum of processes that are looked at. */
const MAX_PROCESSES = 64;

/** The library of Open MPI that `pid` or one of its descendants uses; null if none does, or all have ended. */
export function openMpiProgram(pid: number, libraryOf = openMpiLibrary): string | null {
  const pids = [pid];
  for (let at = 0; at < pids.length && pids.length < MAX_PROCESSES; at++) pids.push(...childrenOf(pids[at] ?? 0));
  for (const one of pids) {
    const library = libraryOf(one);
    if (library !== null) return library;
  }
  return null;
}

/** The library of Open MPI that this process uses itself. */
function openMpiLibrary(pid: number): string | null {
  try {
    const linked = neededLibraries(`/proc/${pid}/exe`).find((name) => OPEN_MPI.test(name));
    if (linked !== undefined) return linked;
    const maps = readFileSync(`/proc/${pid}/maps`, 'latin1');
    if (!MPI4PY.test(maps)) return null;
    const loaded = Array.from(maps.matchAll(/\/([^/\n]+)$/gmu), ([, name = '']) => name);
    return loaded.find((name) => OPEN_MPI.test(name)) ?? null;
  } catch {
    return null; // it has ended, or is somebody else's
  }
}

function childrenOf(pid: number): number[] {
  try {
    const text = readFileSync(`/proc/${pid}/task/${pid}/children`, 'latin1');
    return text.split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}
