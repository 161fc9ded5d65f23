/** What doctor finds out, and what it can tell of a check. */
import type { HostCounters, HostReadings } from '../../control/readings.ts';

/** unknown: it could not be checked, which is not ok. */
export type Answer = 'ok' | 'note' | 'warn' | 'fail' | 'unknown';

export interface Finding {
  /** `shared-memory.size`: docs/doctor.md has them all. */
  readonly check: string;
  readonly answer: Answer;
  /** Null: it is about several hosts, or none. */
  readonly host: string | null;
  /** Part of the host: `eth0`, `/dev/shm`, `GPU 3`; empty: the host itself. */
  readonly subject: string;
  /** What is so, with the value, and what is usual. */
  readonly message: string;
  /** What to do; null where nothing is wrong. It is never done here. */
  readonly remedy: string | null;
}

/** A host that was reached. */
export interface ReadHost {
  readonly name: string;
  readonly readings: HostReadings;
}

/** A host whose counters were read once more. */
export interface CountedHost {
  readonly name: string;
  readonly counters: HostCounters;
}

/** What a check says of one host; nothing: all is well there. */
export type Complaint = Pick<Finding, 'answer' | 'message' | 'remedy'> & { readonly subject?: string };

export interface Check {
  readonly id: string;
  /** For --help's page: what is looked at. */
  readonly about: string;
  /** Complaints of one host by itself. Null: this host has nothing that could be checked. */
  readonly ofHost?: (readings: HostReadings, hosts: readonly ReadHost[]) => readonly Complaint[] | null;
  /** Values that hosts should have alike. */
  readonly alike?: {
    readonly what: string;
    readonly value: (readings: HostReadings) => string | null;
    readonly answer: 'note' | 'warn' | 'fail';
    readonly remedy: string;
  };
}

/** By weight. */
export const answers: readonly Answer[] = ['fail', 'warn', 'unknown', 'note', 'ok'];

export const fail = (message: string, remedy: string, subject = ''): Complaint => ({
  answer: 'fail',
  message,
  remedy,
  subject,
});
export const warn = (message: string, remedy: string, subject = ''): Complaint => ({
  answer: 'warn',
  message,
  remedy,
  subject,
});
export const note = (message: string, remedy: string | null = null, subject = ''): Complaint => ({
  answer: 'note',
  message,
  remedy,
  subject,
});
export const unknown = (message: string, remedy: string, subject = ''): Complaint => ({
  answer: 'unknown',
  message,
  remedy,
  subject,
});
