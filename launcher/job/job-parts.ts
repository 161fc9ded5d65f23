/** What a job is made of and the states that it is in; job.ts has their diagram. */
import type { Countdown } from '../../control/clock.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { FailurePolicy } from './failure-policy.ts';
import type { GpuMemoryCheck } from './gpu-memory.ts';
import type { HostClocks } from '../clocks/host-clocks.ts';
import type { HangJudge } from './hang.ts';
import type { HangStacks } from './hang-stacks.ts';
import type { JobClock } from './job-clock.ts';
import type { PhaseClock } from './phase-clock.ts';
import type { RecorderReader } from './recorder.ts';
import type { StackReader } from './stacks.ts';
import type { JobEvent } from '../model/event.ts';
import type { JobRequest, Reporter } from '../model/types.ts';
import type { PositionReader } from './status.ts';
import type { Stragglers } from './stragglers.ts';
import type { JobVerdicts } from './verdicts.ts';
import type { Xids } from './xids.ts';

export type JobState =
  | { readonly name: 'connecting' }
  | { readonly name: 'spawning' }
  | { readonly name: 'running' }
  /** The ranks were asked to end; `kill` ends them after the grace, null while they may take their time. */
  | { readonly name: 'stopping'; readonly since: number; readonly kill: Countdown | null }
  | { readonly name: 'teardown' }
  | { readonly name: 'over' };

type Untimed<Event> = Event extends JobEvent ? Omit<Event, 'time'> : never;
/** An event without its time, which the job adds. */
export type UntimedEvent = Untimed<JobEvent>;

/** What the job needs of the rendezvous across hosts. */
export interface Rendezvous {
  receive(hostIndex: number, frame: Frame): void;
  rankEnded(rank: number, sentence: string): void;
  hostLost(hostIndex: number, sentence: string): void;
  close(): void;
}

export interface JobParts {
  readonly request: JobRequest;
  readonly reporter: Reporter;
  readonly phases: PhaseClock;
  /** Counts all that may run out. */
  readonly clock: JobClock;
  readonly policy: FailurePolicy;
  readonly xids: Xids;
  readonly memory: GpuMemoryCheck;
  readonly hangs: HangJudge;
  readonly hangStacks: HangStacks;
  readonly recorders: RecorderReader;
  readonly stacks: StackReader;
  readonly verdicts: JobVerdicts;
  readonly positions: PositionReader;
  readonly clocks: HostClocks;
  readonly stragglers: Stragglers;
  readonly readsStdin: (rank: number) => boolean;
}
