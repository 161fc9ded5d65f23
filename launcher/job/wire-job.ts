/** Wires one attempt: a job with the parts that judge what happens in it. Nobody is connected to yet. */
import { clockId } from '../../control/clock-id.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { HostClocks } from '../clocks/host-clocks.ts';
import { FailurePolicy } from './failure-policy.ts';
import { GpuMemoryCheck } from './gpu-memory.ts';
import { HangJudge } from './hang.ts';
import { HangStacks } from './hang-stacks.ts';
import { Job } from './job.ts';
import type { JobParts } from './job-parts.ts';
import { RecorderReader } from './recorder.ts';
import { StackReader } from './stacks.ts';
import { PositionReader } from './status.ts';
import { Stragglers } from './stragglers.ts';
import { JobVerdicts } from './verdicts.ts';
import { Xids } from './xids.ts';

export interface WiredJob {
  readonly job: Job;
  readonly policy: FailurePolicy;
  readonly memory: GpuMemoryCheck;
  readonly recorders: RecorderReader;
  readonly stacks: StackReader;
  readonly verdicts: JobVerdicts;
  readonly positions: PositionReader;
}

/** `hostCount`: hosts that share the output window. */
export function wireJob(
  parts: Omit<
    JobParts,
    | 'policy'
    | 'xids'
    | 'memory'
    | 'hangs'
    | 'hangStacks'
    | 'recorders'
    | 'stacks'
    | 'verdicts'
    | 'positions'
    | 'clocks'
    | 'stragglers'
  >,
  hostCount: number,
): WiredJob {
  const xids: Xids = new Xids({
    clockAheadMs: (name) => job.hosts.find((host) => host.name === name)?.clockAheadMs ?? 0,
    report: (xid, at) => job.emit({ type: 'xid', ...xid, at }),
  });
  const policy = new FailurePolicy((failure, time) => xids.complete(failure, time));
  const memory = new GpuMemoryCheck({
    clock: parts.clock,
    report: (message) => job.emit({ type: 'notice', message }),
  });
  const agents = {
    hosts: () => job.hosts.filter(({ state }) => state.name === 'running').map(({ name }) => name),
    send: (name: string, frame: Frame) => job.hosts.find((host) => host.name === name)?.send(frame),
  };
  const clocks: HostClocks = new HostClocks({
    ownId: clockId(),
    idOf: (name) => job.hosts.find((host) => host.name === name)?.hello?.clockId ?? null,
    send: agents.send,
  });
  const positions: PositionReader = new PositionReader({ ...agents, clocks });
  const hangs: HangJudge = new HangJudge({ ...agents, found: (hang) => hangStacks.add(hang) });
  const hangStacks: HangStacks = new HangStacks({
    read: (ranks) => stacks.read(ranks),
    found(hang) {
      job.emit({ type: 'hang', ...hang });
      if (parts.request.onHang === 'abort' || parts.request.onHang === 'restart')
        job.failures.fail({ type: 'hang', ...hang });
    },
    late({ communicator, operation, verdict: { blamed } }, found) {
      job.emit({ type: 'hang-stacks', communicator, operation, blamed, stacks: found });
    },
  });
  const recorders: RecorderReader = new RecorderReader({
    isWanted: parts.request.recordsFailures,
    wantsAll: parts.request.recordsAll,
    hosts: () => job.recordedHosts(),
    clocks,
    send: (name, frame) => job.hosts.find((host) => host.name === name)?.send(frame),
  });
  const stacks: StackReader = new StackReader({
    hosts: () => job.recordedHosts(),
    send: (name, frame) => job.hosts.find((host) => host.name === name)?.send(frame),
  });
  const stragglers = new Stragglers({
    positions,
    intervalMs: parts.request.stragglerWindowSeconds * 1000,
    found: (verdict) => job.emit({ type: 'verdict', verdict, replaces: false }),
    ended: (message) => job.emit({ type: 'notice', message }),
  });
  const verdicts: JobVerdicts = new JobVerdicts({
    emit: (event) => job.emit(event),
    ranksOn: (host) => job.ranksOn(host),
  });
  const readers = { recorders, stacks, positions, verdicts };
  const job = new Job({ ...parts, policy, xids, memory, hangs, hangStacks, stragglers, clocks, ...readers }, hostCount);
  return { job, policy, memory, ...readers };
}
