/** Everything that happens in a job. Reporters turn these into text, JSON lines, the result; no module prints. */
import type { Failure, Phase } from './failure.ts';
import type { Blamed, Hang, HangStack, Verdict } from './hang.ts';
import type { HostXid } from './xid.ts';

export const EVENT_SCHEMA_VERSION = 1;

interface Base {
  /** Milliseconds since 1970, whole. */
  readonly time: number;
}

export type JobEvent =
  | (Base & {
      type: 'job-started';
      jobId: string;
      ranks: number;
      hosts: readonly string[];
      /** With their arguments; more than one where `:` separated them. */
      programs: readonly (readonly string[])[];
    })
  | (Base & { type: 'phase'; phase: Phase })
  | (Base & { type: 'host-connecting'; host: string })
  /** Another remote shell than the requested one reaches the host; `message` has the reason. */
  | (Base & { type: 'host-remote-shell'; host: string; message: string })
  /** What the connection to it is about to do; `step` is a few words for people. */
  | (Base & { type: 'host-step'; host: string; step: string })
  /** It lacks ncclrun and gets a copy of so many bytes. */
  | (Base & { type: 'host-staging'; host: string; bytes: number })
  | (Base & { type: 'host-up'; host: string; cores: number; gpus: number; pid: number })
  | (Base & { type: 'host-ended'; host: string })
  /** --report-bindings: `cpus` of the host that the rank may use, all that the job has there unless `bound`; `gpu` is the rank's own. */
  | (Base & {
      type: 'binding';
      rank: number;
      host: string;
      bound: boolean;
      cpus: readonly number[];
      numa: number | null;
      gpu: number | null;
    })
  | (Base & { type: 'rank-started'; rank: number; host: string; pid: number })
  | (Base & { type: 'rank-exited'; rank: number; host: string; exitCode: number | null; signal: NodeJS.Signals | null })
  | (Base & { type: 'waiting'; what: string; missing: readonly string[]; seconds: number })
  /** Ranks do not get on in an operation; `late`: who keeps them waiting, a sentence each. */
  | (Base & { type: 'hang' } & Hang)
  /** Stacks that were read too late for the hang's verdict. */
  | (Base & {
      type: 'hang-stacks';
      communicator: string;
      operation: number;
      blamed: readonly Blamed[];
      stacks: readonly HangStack[];
    })
  /**
   * What was found out beside hangs: calls that differ, who failed first, who does not join, who is slow. `replaces`: it takes the place of a
   * suspected one about the same communicator.
   */
  | (Base & { type: 'verdict'; verdict: Verdict; replaces: boolean })
  /** A GPU error that NVIDIA's driver wrote to the kernel's log (Xid); `at` is its time by our clock. */
  | (Base & { type: 'xid'; at: number } & HostXid)
  | (Base & { type: 'communicator'; ranks: number; hosts: number })
  /** A host, or the launcher for several, takes the variants of a communicator from a table of measured times; unless `measured`, the table is missing and `key` describes its content. */
  | (Base & { type: 'tuning'; host: string; ranks: number; file: string; key: string; measured: boolean })
  | (Base & { type: 'signal'; signal: NodeJS.Signals; forwarded: boolean })
  | (Base & { type: 'failure'; failure: Failure; primary: boolean })
  | (Base & { type: 'notice'; message: string })
  /** Which network and NICs a communicator of several hosts uses, and why; with NCCL_DEBUG=INFO it is a notice instead. */
  | (Base & { type: 'network'; message: string })
  /** All ranks are started again, because of `failure`, on `hosts`; `attempt` counts from 1. */
  | (Base & { type: 'restart'; attempt: number; limit: number; failure: Failure; hosts: readonly string[] })
  /** The `left` other ranks go on after `failure`. */
  | (Base & { type: 'shrink'; failure: Failure; left: number })
  | (Base & { type: 'job-ended'; ok: boolean; reason: string; exitCode: number });

/** A piece of a rank's output; not an event (its volume is another), but reporters get both. */
export interface OutputChunk {
  readonly rank: number;
  readonly host: string;
  readonly stream: 'stdout' | 'stderr';
  /** When its host's guardian read it, by that host's clock: milliseconds since 1970. */
  readonly time: number;
  /** Whole lines, unless `partial`. */
  readonly bytes: Uint8Array;
  /** The last line of `bytes` has no newline yet (or never will, at the end of the stream). */
  readonly partial: boolean;
}
