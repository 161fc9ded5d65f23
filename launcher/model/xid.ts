/** Errors that GPUs of a job have reported to their drivers (NVIDIA's Xids). */
import type { Xid } from '../../control/messages/gpu.ts';

export interface HostXid extends Omit<Xid, 'time'> {
  readonly host: string;
}

export interface XidBefore extends HostXid {
  /** Of the failure; 0 also where clocks say that it came a moment later. */
  readonly secondsBefore: number;
}
