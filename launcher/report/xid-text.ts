/** Errors of GPUs (NVIDIA's Xids) for people. */
import type { HostXid, XidBefore } from '../model/xid.ts';
import { ranksText } from '../text/counted.ts';
import { xidMeaning } from './xid-meanings.ts';

/** `node7: GPU 3 (0000:1b:00.0, rank 11) reported Xid 79: GPU has fallen off the bus (pid 4711)`. */
export function xidText(xid: HostXid): string {
  return `${xid.host}: GPU ${xid.gpu} (${xid.address}, ${ranksText(xid.ranks)}) reported ${errorText(xid)}`;
}

/** A line for each, as `rank` sees them, or a failure that is no rank's. */
export function xidLines(xids: readonly XidBefore[], rank: number | null): string[] {
  return xids.map((xid) => {
    const isOwn = rank !== null && xid.ranks.includes(rank);
    const reported = isOwn ? `GPU ${xid.gpu} (${xid.address}) reported ${errorText(xid)}` : xidText(xid);
    return xid.secondsBefore > 0 ? `${reported}, ${xid.secondsBefore} s before` : reported;
  });
}

/** What to do about the first that did not follow from another; null: nothing. */
export function xidRemedy(xids: readonly XidBefore[]): string | null {
  for (const { code, host, gpu } of xids) {
    const next = xidMeaning(code)?.next ?? null;
    if (next !== null) return `Xid ${code} of GPU ${gpu} on ${host}: ${next}`;
  }
  return null;
}

function errorText({ code, message, pid }: HostXid): string {
  const words = message === '' ? (xidMeaning(code)?.what ?? '') : message;
  return `Xid ${code}${words === '' ? '' : `: ${words}`}${pid === null ? '' : ` (pid ${pid})`}`;
}
