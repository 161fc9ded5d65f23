/** Errors of GPUs and NVSwitches in the kernel's log, as far back as it goes. */
import { closeSync, constants, openSync, readSync } from 'node:fs';
import { join } from 'node:path';
import type { HostReadings } from '../../control/readings.ts';
import { parseXid } from '../agent/xid.ts';
import { readText } from '../topology/system-files.ts';
import { numberOf } from './whole-numbers.ts';

type KernelLog = HostReadings['kernelLog'];

/** Records of /dev/kmsg are shorter (CONSOLE_EXT_LOG_MAX); and no log has more of them. */
const BUFFER_BYTES = 8192;
const MAX_READS = 200_000;
const MAX_KEPT = 64;

export function readKernelLog(root: string): KernelLog {
  const lines = linesOf(join(root, 'dev/kmsg'));
  if (lines === null) return { readable: false, xids: [] };
  const upSeconds = numberOf(readText(root, 'proc/uptime'));
  const xids = lines.flatMap((line) => {
    // priority,number,microseconds,flags;text
    const [, microseconds, text = ''] = /^\d+,\d+,(\d+),[^;]*;(.*)$/u.exec(line) ?? [];
    const found = errorIn(text);
    if (found === null) return [];
    const seconds = upSeconds === null ? null : upSeconds - Number(microseconds) / 1e6;
    return [{ ...found, hoursAgo: seconds === null ? null : Math.max(0, seconds) / 3600 }];
  });
  return { readable: true, xids: xids.slice(-MAX_KEPT) };
}

/** `nvidia-nvswitch0: SXid (PCI:0000:c1:00.0): 12028, Non-fatal, Link 41 egress …` */
function errorIn(text: string): Omit<KernelLog['xids'][number], 'hoursAgo'> | null {
  const xid = parseXid(text);
  if (xid !== null) return { code: xid.code, nvswitch: false, address: xid.address, message: xid.message };
  const [, address, code, message = ''] = /SXid \(PCI:([0-9a-f:.]{1,16})\): (\d{1,6}), (.*)$/iu.exec(text) ?? [];
  return address === undefined
    ? null
    : { code: Number(code), nvswitch: true, address: address.toLowerCase(), message: message.slice(0, 200) };
}

/** Null: it may not be read. A read returns one record, and does not wait for the next. */
function linesOf(path: string): string[] | null {
  let descriptor: number;
  try {
    descriptor = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return null;
  }
  const buffer = Buffer.alloc(BUFFER_BYTES);
  let text = '';
  try {
    for (let reads = 0; reads < MAX_READS; reads++) {
      const length = readOr(descriptor, buffer);
      if (length === 0) break;
      if (length > 0) text += buffer.toString('utf8', 0, length);
    }
  } finally {
    closeSync(descriptor);
  }
  return text.split('\n').filter((line) => line.includes('Xid ('));
}

/** 0: the end. -1: records were overwritten before they were read; the next ones follow. */
function readOr(descriptor: number, buffer: Buffer): number {
  try {
    return readSync(descriptor, buffer);
  } catch (error) {
    return error instanceof Error && 'code' in error && error.code === 'EPIPE' ? -1 : 0;
  }
}
