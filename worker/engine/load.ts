/** Finds and loads the native addon, once, when it is first needed. */
import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Native } from './native.ts';
import { traced } from './trace.ts';

/** In the order of native.ts and native/binding/module.cc. */
const FUNCTIONS: readonly (keyof Native)[] = [
  'setChildSubreaper',
  'endAfter',
  'freePorts',
  'tcpUserTimeout',
  'tcpEnd',
  'reapChild',
  'kernelLogOpen',
  'toolRun',
  'blockSigusr1',
  'prefixLines',
  'widenPipe',
  'replaceDescriptor',
  'localServerOpen',
  'localServerAdopt',
  'childStart',
  'toolStart',
  'localServerWrite',
  'streamsServe',
  'childKill',
  'childStopped',
  'localServerSend',
  'localServerDisconnect',
  'localServerCatchUp',
  'localServerClose',
  'exitNow',
  'sealedMemory',
  'segmentCreate',
  'segmentAbort',
  'telemetryCreate',
  'recorderCreate',
  'close',
  'nameHold',
  'nameHolder',
  'version',
  'getUniqueId',
  'getJob',
  'commInit',
  'commReady',
  'commSplit',
  'commInfo',
  'nodeBarrier',
  'abort',
  'commClose',
  'commWatch',
  'operate',
  'streamOperate',
  'group',
  'memoryAllocate',
  'memoryFree',
  'gpuCount',
  'deviceAllocate',
  'deviceFree',
  'streamCreate',
  'streamCopy',
  'streamFill',
  'streamEnded',
  'streamRecord',
  'streamWait',
  'eventElapsed',
  'captureBegin',
  'captureEnd',
  'graphLaunch',
  'nvmlGpus',
  'cudaGpus',
  'verbsPorts',
  'gpuMemory',
  'gpuHealth',
  'xidEventsOpen',
  'xidEventsTake',
  'xidEventsClose',
];

/** The native addon cannot be loaded; the message has the paths tried and a remedy. */
export class NativeLoadError extends Error {
  static {
    this.prototype.name = 'NativeLoadError';
  }
}

let loaded: Native | null = null;

/** @throws NativeLoadError, also where this process runs on a Node that is too old */
export function loadNative(): Native {
  if (loaded !== null) return loaded;
  refuseOldNode(process.versions.node);
  loaded = traced(load(candidates()));
  reapStartChild(loaded);
  return loaded;
}

/** The child by which the start kept variables (scripts/start.cjs). */
function reapStartChild(native: Native): void {
  const child = process.env['NCCLRUN_CHILD'];
  if (child === undefined) return;
  delete process.env['NCCLRUN_CHILD'];
  native.reapChild(Number(child));
}

/** As scripts/start.cjs does for our own processes. Exported for tests. */
export function refuseOldNode(version: string): void {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > 22 || (major === 22 && minor >= 18)) return;
  throw new NativeLoadError(
    `this program runs on Node ${version}, and ncclrun needs Node 22.18 or newer: start it with a newer one, or by ncclrun -n N PROGRAM`,
  );
}

/**
 * Ends this process, with nothing left to write. Not by Node's own exit, which waits for V8's threads: after much output some of them wait
 * for a garbage collection by the main thread, for ever (nodejs/node#54918).
 */
export function leave(status: number): never {
  const orderly = process.listenerCount('exit') > 0 || process.env['NCCLRUN_DEBUG'] === '1'; // --cpu-prof writes in the end
  if (!orderly) loaded?.exitNow(status);
  return process.exit(status);
}

/** npm package that holds the native code. */
const platformPackage = `@ncclrun/linux-${process.arch}`;

/**
 * This file is worker/engine/load.ts, dist/worker/engine/load.js, or part of dist/bundle/*.cjs or dist/worker/index.js. In a checkout, build/ is
 * beside worker/ and dist/. npm installs the platform package inside our package or beside it.
 */
function candidates(): string[] {
  const here = dirname(fileURLToPath(import.meta.url));
  const roots = [join(here, '../..'), join(here, '../../..')];
  const own = roots.find((root) => existsSync(join(root, 'package.json'))) ?? join(here, '../..');
  return [own, join(own, 'node_modules', platformPackage), join(own, '..', platformPackage)].map((root) =>
    join(root, 'build/ncclrun.node'),
  );
}

/** Without Node's search for modules, which costs each start two milliseconds. */
function openAddon(path: string): unknown {
  const module = { exports: {} };
  process.dlopen(module, path);
  return module.exports;
}

/** The first that is there counts. Exported for tests. */
export function load(paths: readonly string[], open = openAddon): Native {
  const problems: string[] = [];
  for (const path of paths) {
    if (!existsSync(path)) {
      problems.push(`${path}: there is no such file`);
      continue;
    }
    try {
      const addon = open(path);
      if (isNative(addon)) return addon;
      problems.push(`${path}: it is another version's, without ${missing(addon).join(', ')}`);
    } catch (error) {
      problems.push(`${path}: ${error instanceof Error ? firstLine(error.message) : String(error)}`);
    }
  }
  const tried = problems.map((problem) => `  ${problem}`).join('\n');
  throw new NativeLoadError(`cannot load ncclrun's native addon; tried\n${tried}\n${remedy(problems.join('\n'))}`);
}

function missing(addon: unknown): string[] {
  if (typeof addon !== 'object' || addon === null) return [...FUNCTIONS];
  return FUNCTIONS.filter((name) => typeof Reflect.get(addon, name) !== 'function');
}

function isNative(addon: unknown): addon is Native {
  return missing(addon).length === 0;
}

function firstLine(message: string): string {
  return message.split('\n')[0] ?? message;
}

function remedy(problems: string): string {
  if (process.platform !== 'linux') return `ncclrun runs on Linux; this is ${process.platform}.`;
  if (problems.includes('GLIBC')) {
    return 'This system is older than what it was built for: packages of ncclrun want glibc 2.28 or newer. A checkout can be built here, with npm install.';
  }
  if (problems.includes('libnccl.so.2')) {
    return 'libnccl.so.2 belongs beside ncclrun.node. Install ncclrun again, or run npm run build in a checkout.';
  }
  if (/invalid ELF header|wrong ELF class|cannot open shared object file/.test(problems)) {
    return `It was built for another machine than this one (${process.arch}). Build it here: npm run build in a checkout.`;
  }
  return `In a checkout npm run build makes it; else npm install --include=optional brings ${platformPackage}, which has it.`;
}
