/** An agent whose link, guardian and bootstrap a test plays: its state machine without any process. */
import { rmSync } from 'node:fs';
import type { AgentReport } from '../../control/messages/link.ts';
import { decodeFrame, encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FRAME_HEADER_BYTES, FrameKind, type Frame } from '../../control/messages/frame.ts';
import { Agent } from '../../worker/agent/agent.ts';
import type { AgentOptions } from '../../worker/agent/agent-state.ts';
import type { OpenBootstrap } from '../../worker/agent/bootstrap-service.ts';
import type { LocalServer, LocalServerEvent, Native } from '../../worker/engine/native.ts';
import { scriptedJob } from './scripted-host.ts';

interface PlayedAgentOptions {
  /** Runs in the launcher. */
  readonly local?: boolean;
  /** Restarts that may follow. */
  readonly maxRestarts?: number;
  /** Another job may follow. */
  readonly stays?: boolean;
  /** Reports of ends wait until the test releases them. */
  readonly holdsReports?: boolean;
  /** Number of the job's hosts. */
  readonly hostCount?: number;
  /** Where ranks run is said with the start, not with the order. */
  readonly late?: boolean;
  /** The interface by which other hosts reach this one. */
  readonly interfaces?: string;
  /** Options of its process, which win over all others. */
  readonly process?: Pick<AgentOptions, 'link' | 'order' | 'onEnded'> | null;
}

export function playedAgent({
  local = false,
  maxRestarts = 0,
  stays = false,
  holdsReports = false,
  hostCount = 1,
  late = false,
  interfaces,
  process: ofProcess = null,
}: PlayedAgentOptions = {}) {
  const sent: Frame[] = [];
  const toGuardian: Frame[] = [];
  /** What became of the guardian's process and connection. */
  const guardian: string[] = [];
  const bootstrap: string[] = [];
  const held: (() => void)[] = [];
  let isOver = 0;
  let directory = '';
  let listener: ((event: LocalServerEvent) => void) | null = null;
  const server: LocalServer = Object.create(null);
  const native: Native = Object.assign(Object.create(null), {
    endAfter: () => undefined,
    nameHold: () => null,
    nameHolder: () => null,
    freePorts: () => [4001, 4002],
    childStart(words: readonly string[], onEvent: (event: LocalServerEvent) => void): LocalServer {
      guardian.push(`start for ${words[3]}, lease ${words[2]}`);
      directory = words[1] ?? '';
      listener = onEvent;
      return server;
    },
    localServerWrite(_: LocalServer, __: number, bytes: Uint8Array) {
      for (let rest = Buffer.from(bytes); rest.length > 0; ) {
        const length = FRAME_HEADER_BYTES + rest.readUInt32LE(0);
        toGuardian.push(decodeFrame(rest.subarray(0, length)));
        rest = rest.subarray(length);
      }
    },
    localServerDisconnect: () => void guardian.push('let go'),
    localServerClose: () => void guardian.push('released'),
    childKill: () => void guardian.push('killed'),
  });
  const openBootstrap: OpenBootstrap = () => ({
    receive: ({ kind }) => void bootstrap.push(`frame ${kind}`),
    rankSpawned: (rank, pid) => void bootstrap.push(`spawned ${rank} as ${pid}`),
    rankEnded(rank, { exitCode }, report) {
      bootstrap.push(`ended ${rank} with ${exitCode}`);
      if (holdsReports) held.push(report);
      else report();
    },
    afterReports(then) {
      if (holdsReports) held.push(then);
      else then();
    },
    telemetry: () => [],
    recorders: () => [],
    nicsBetween: () => null,
    close: () => void bootstrap.push('closed'),
  });
  const { order } = scriptedJob(['a'], 2).agents[0] ?? {};
  if (order?.placement === undefined || order.placement === null) throw new Error('no order with a placement');
  const placement = { ...order.placement, hostCount };
  const agent = new Agent({
    link: { open: () => {}, send: (frame) => void sent.push(frame), flush: () => {}, close: () => {} },
    order: {
      ...order,
      maxRestarts,
      stays,
      hangAfterMs: 0,
      preload: false,
      portRange: null,
      placement: late ? null : placement,
      ...(interfaces === undefined ? {} : { interfaces }),
    },
    local,
    native,
    guardianPath: '/guardian',
    openBootstrap,
    onEnded: () => void (isOver += 1),
    ...ofProcess,
  });
  return {
    agent,
    sent,
    toGuardian,
    guardian,
    bootstrap,
    /** Lets the reports of ends go that wait. */
    release: () => held.splice(0).forEach((go) => go()),
    ends: () => isOver,
    /** What it reports on its link, of one type. */
    reports: (type: AgentReport['type']): unknown[] =>
      sent
        .filter(({ kind }) => kind === FrameKind.failure)
        .map(({ payload }): { type: string } => JSON.parse(Buffer.from(payload).toString()))
        .filter((report) => report.type === type),
    kinds: () => sent.map(({ kind }) => kind),
    start: () =>
      agent.receive(
        makeFrame(FrameKind.start, { payload: encodeJson({ placement: late ? placement : null, environment: {} }) }),
      ),
    fromGuardian: (kind: FrameKind, subject = 0, payload: Uint8Array = new Uint8Array(0)) =>
      listener?.({ type: 'frame', connection: 1, kind, flags: 0, subject, request: 0, payload }),
    /** The guardian's process ends, and has removed its directory. */
    guardianDies: (waitStatus: number): void => {
      rmSync(directory, { recursive: true, force: true });
      listener?.({ type: 'died', connection: 1, waitStatus, stderr: '' });
    },
    remove: () => rmSync(directory, { recursive: true, force: true }),
  };
}
