/** Sources of Xids: the kernel's log with the driver's full message, or NVML, which any user may read but which lacks process and message. */
import type { Native } from '../engine/native.ts';
import { sysfsAddress } from '../topology/walk.ts';
import { KernelLog } from './kernel-log.ts';
import { parseXid, type XidLine } from './xid.ts';

export type XidNative = Pick<Native, 'kernelLogOpen' | 'xidEventsOpen' | 'xidEventsTake' | 'xidEventsClose'>;

interface XidNews {
  readonly line: XidLine;
  /** As KernelRecord has it; null: not known. */
  readonly sinceBootMs: number | null;
}

export interface XidSource {
  /** What is new. */
  take(): XidNews[];
  close(): void;
}

export function openXidSource(native: XidNative): XidSource {
  try {
    return fromLog(new KernelLog(native));
  } catch {
    return fromNvml(native);
  }
}

function fromLog(log: KernelLog): XidSource {
  return {
    take: () =>
      log.read().flatMap(({ text, sinceBootMs }) => {
        const line = parseXid(text);
        return line === null ? [] : [{ line, sinceBootMs }];
      }),
    close: () => log.close(),
  };
}

function fromNvml(native: XidNative): XidSource {
  const events = native.xidEventsOpen();
  return {
    take: () =>
      native.xidEventsTake(events).map(({ busId, code }) => {
        const address = sysfsAddress(busId).replace(/\.[0-9a-f]$/u, '');
        return { line: { code, address, pid: null, message: '' }, sinceBootMs: null };
      }),
    close: () => native.xidEventsClose(events),
  };
}
