/** Node's debugger: it listens where SIGUSR1 or an option of Node's lets it, and whoever connects runs code. */
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { basename } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';

const LISTEN = '0A';
const SIGUSR1_BIT = 1n << 9n;
/** Signals after the process has loaded our addon. */
export const LAST_SIGNALS = 20;

function lines(path: string): string[] {
  try {
    return readFileSync(path, 'utf8').split('\n');
  } catch {
    return []; // the process has ended, or is about to be
  }
}

/** TCP sockets that the process listens with on the loopback interface alone, where nothing else of ours does; as /proc writes addresses. */
export function loopbackListeners(pid: number): string[] {
  const own = new Set(descriptorsOf(pid));
  const rows = ['tcp', 'tcp6'].flatMap((table) => lines(`/proc/${pid}/net/${table}`).slice(1));
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, , , state, , , , , , inode]) => state === LISTEN && own.has(`socket:[${inode}]`))
    .map(([, address = '']) => address)
    .filter((address) => !/^0+:/.test(address));
}

function descriptorsOf(pid: number): string[] {
  try {
    return readdirSync(`/proc/${pid}/fd`).map((fd) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${fd}`);
      } catch {
        return ''; // closed meanwhile
      }
    });
  } catch {
    return [];
  }
}

/** Whether SIGUSR1 ends the process no more: its shell ignores it, which takes a few instructions, or it is Node, which blocks it first of all. */
export function outlivesSigusr1(pid: number): boolean {
  const masks = lines(`/proc/${pid}/status`).filter((line) => /^Sig(Ign|Blk|Cgt):/.test(line));
  // A shell that starts a process blocks all signals for a moment.
  const lasting = isNode(pid) ? masks : masks.filter((line) => line.startsWith('SigIgn'));
  return lasting.some((line) => (BigInt(`0x${line.split(/\s+/)[1] ?? '0'}`) & SIGUSR1_BIT) !== 0n);
}

function isNode(pid: number): boolean {
  try {
    return basename(readlinkSync(`/proc/${pid}/exe`)) === 'node';
  } catch {
    return false;
  }
}

const hasAddon = (pid: number): boolean => lines(`/proc/${pid}/maps`).some((line) => line.endsWith('/ncclrun.node'));

/**
 * Sends SIGUSR1 every millisecond until the process has loaded the addon, and a little longer; resolves with all that it ever listened with.
 * More often would leave a Node that heeds the signal no time for its start.
 */
export async function hammerSigusr1(pid: number): Promise<{ readonly listeners: string[]; readonly sent: number }> {
  const listeners = new Set<string>();
  let sent = 0;
  for (let left = LAST_SIGNALS; left > 0; sent += 1) {
    process.kill(pid, 'SIGUSR1');
    for (const listener of loopbackListeners(pid)) listeners.add(listener);
    if (hasAddon(pid)) left -= 1;
    await delay(1);
  }
  return { listeners: [...listeners], sent };
}
