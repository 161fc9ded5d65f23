/**
 * One host's life as the launcher knows it: its agent's connection, hello and end.
 *
 *   connecting ── hello ──► up ── start ──► running ── end ──► ending ── ended ──► ended
 *        │                  │                  │                  │
 *        └──────────────────┴── link closed, silence, refusal ────┴──────────────► lost
 */
import { parseHello, parseReport } from '../../control/link/validate.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { FreeGpuMemory, Xid } from '../../control/messages/gpu.ts';
import type { AgentHello, AgentOrder, AgentReport, AgentStart } from '../../control/messages/link.ts';
import type { AggregateAnswer, AggregateOrder } from '../../control/messages/aggregator.ts';
import type { ReachAnswer, ReachQuestion } from '../../control/messages/reach.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { TableUse } from '../../control/planner/measured/tables.ts';
import type { AgentConnection, ConnectionEnd, StartAgent } from '../remote/shell/connection.ts';
import { AGENT_START } from '../remote/shell/shell.ts';
import type { AgentFailure, Failure, HostLostFailure } from '../model/failure.ts';
import { EndBounds } from './end-bounds.ts';
import { HostBounds } from './host-bounds.ts';
import type { HostPreflight } from './preflight.ts';
import type { HostSlots } from '../model/types.ts';

type HostState =
  | { readonly name: 'connecting' }
  | { readonly name: 'up'; readonly hello: AgentHello }
  | { readonly name: 'running'; readonly hello: AgentHello }
  /** `hello` null: ended before it came. */
  | { readonly name: 'ending'; readonly hello: AgentHello | null }
  | { readonly name: 'ended'; readonly hello: AgentHello | null }
  | { readonly name: 'lost'; readonly failure: Failure };

export type MpiAbort = Extract<AgentReport, { type: 'mpi-abort' }>;

export interface HostHandler {
  hello(host: Host): void;
  /** Frames about ranks and rendezvous. @throws ProtocolError: the host is lost */
  frame(host: Host, frame: Frame): void;
  notice(host: Host, message: string): void;
  /** Of ranks that are about to start. */
  startNotice(host: Host, message: string): void;
  /** Ranks hang there, or it says where its ranks are. */
  hang(host: Host, report: Extract<AgentReport, { type: 'stalled' | 'rankPositions' }>): void;
  /** What it knows of calls that differ, or of a rank that failed. */
  verdict(host: Host, report: Extract<AgentReport, { type: 'calls-differ' | 'left-behind' | 'last-position' }>): void;
  /** The resource manager wants the job to end. */
  askedToEnd(host: Host, signal: 'SIGTERM' | 'SIGINT'): void;
  /** What it has measured decides a communicator's variants, or they are to be measured. */
  tuning(host: Host, use: TableUse): void;
  /** It is reached by another remote shell than usual. */
  remoteShell(host: Host, message: string): void;
  /** How far its connection is. */
  step(host: Host, step: string): void;
  /** Not all of its output is taken yet. */
  isHeldUp(host: Host): boolean;
  /** What is known of a rank's end; the end itself follows. @throws ProtocolError for a rank that is not there */
  ofEnd(host: Host, report: Extract<AgentReport, { type: 'out-of-memory' | 'rank-gpu' }>): void;
  /** @throws ProtocolError likewise */
  mpiAbort(host: Host, report: MpiAbort): void;
  /** A GPU of its ranks reported an error. */
  xid(host: Host, xid: Xid): void;
  /** How much memory of its ranks' GPUs was free before they started. */
  gpuMemory(host: Host, gpus: readonly FreeGpuMemory[]): void;
  /** It lacks ncclrun and gets a copy of so many bytes. */
  staging(host: Host, bytes: number): void;
  /** No process of the job is left there. */
  ended(host: Host): void;
  lost(host: Host, failure: Failure): void;
}

export class Host {
  readonly slots: HostSlots;
  readonly #order: AgentOrder;
  readonly #handler: HostHandler;
  readonly #bounds = new HostBounds();
  /** Once its ranks are to be killed. */
  #endBounds: EndBounds | null = null;
  #connection: AgentConnection | null = null;
  #state: HostState = { name: 'connecting' };
  #isReached = false;
  #clockAheadMs = 0;
  #suspended: PromiseWithResolvers<void> | null = null;
  #asked: PromiseWithResolvers<ReachAnswer | null> | null = null;
  #aggregators: PromiseWithResolvers<AggregateAnswer | null> | null = null;

  constructor(slots: HostSlots, order: AgentOrder, handler: HostHandler) {
    this.slots = slots;
    this.#order = order;
    this.#handler = handler;
  }

  get name(): string {
    return this.slots.name;
  }

  get state(): HostState {
    return this.#state;
  }

  /** Null before its hello and after its loss. */
  get hello(): AgentHello | null {
    return 'hello' in this.#state ? this.#state.hello : null;
  }

  /** Bytes of output that its ranks may send before any is taken. */
  get outputCredit(): number {
    return this.#order.outputCredit;
  }

  /** What is compared with other hosts; null before its hello. */
  get preflight(): HostPreflight | null {
    const { hello } = this;
    if (hello === null) return null;
    return { name: this.name, facts: hello.preflight, clockAheadMs: this.clockAheadMs };
  }

  /** By how much its clock is ahead of ours; negative: behind. */
  get clockAheadMs(): number {
    return this.slots.local ? 0 : this.#clockAheadMs;
  }

  /** Its agent starts, or has: what is left to do before its hello is done there. */
  get isReached(): boolean {
    return this.#isReached || this.#state.name !== 'connecting';
  }

  get isOver(): boolean {
    return this.#state.name === 'ended' || this.#state.name === 'lost';
  }

  connect(startAgent: StartAgent): void {
    if (this.#state.name !== 'connecting') return;
    this.#connection = startAgent(this.slots, this.#order, {
      frame: (frame) => this.#receive(frame),
      remoteShell: (message) => this.#handler.remoteShell(this, message),
      step: (step) => {
        this.#isReached ||= step === AGENT_START;
        this.#handler.step(this, step);
      },
      staging: (bytes) => this.#handler.staging(this, bytes),
      closed: (end) => this.#closed(end),
    });
  }

  send(frame: Frame): void {
    this.#connection?.send(frame);
  }

  /** Resolves to null where no answer can come any more. One question at a time. */
  ask(question: ReachQuestion): Promise<ReachAnswer | null> {
    if (this.#state.name !== 'up') return Promise.resolve(null);
    this.#asked = Promise.withResolvers();
    this.send(makeFrame(FrameKind.reach, { payload: encodeJson(question) }));
    return this.#asked.promise;
  }

  /** Starts aggregators there. Resolves to null where no answer can come any more. */
  aggregate(order: AggregateOrder): Promise<AggregateAnswer | null> {
    if (this.#state.name !== 'up') return Promise.resolve(null);
    this.#aggregators = Promise.withResolvers();
    this.send(makeFrame(FrameKind.aggregate, { payload: encodeJson(order) }));
    return this.#aggregators.promise;
  }

  /** Nobody waits for it any more. */
  #settle(): void {
    this.#suspensionDone();
    this.#answered(null);
    this.#aggregators?.resolve(null);
    this.#endBounds?.close();
  }

  #answered(answer: ReachAnswer | null): void {
    this.#asked?.resolve(answer);
    this.#asked = null;
  }

  start(start: AgentStart): void {
    if (this.#state.name !== 'up') return;
    this.#state = { name: 'running', hello: this.#state.hello };
    this.send(makeFrame(FrameKind.start, { payload: encodeJson(start) }));
  }

  /** Ends what is left of the job there; `ended` or `lost` follows. */
  end(): void {
    switch (this.#state.name) {
      case 'connecting':
        if (this.#connection === null) return this.#end(null);
        break;
      case 'up':
      case 'running':
        break;
      case 'ending':
      case 'ended':
      case 'lost':
        return undefined;
      default:
        return this.#state satisfies never;
    }
    const isUnstarted = this.#state.name === 'connecting';
    this.#state = { name: 'ending', hello: this.hello };
    this.send(makeFrame(FrameKind.end));
    // An agent that has not spoken yet has started nothing; its stdin's end is all it needs to know.
    if (isUnstarted && !this.slots.local) this.#end(null);
    else
      this.#endBounds = new EndBounds({
        isHeldUp: () => this.#handler.isHeldUp(this),
        overdue: (seconds) =>
          this.lose(
            this.#lost('protocol', `its ranks were to be killed ${seconds} s ago, and it does not say that they are`),
          ),
      });
    return undefined;
  }

  /** No lease is judged until `resume`. Resolves when the host has done so, and all that it was sent before; or there is nobody to do it. */
  suspend(): Promise<void> {
    if (this.#state.name !== 'up' && this.#state.name !== 'running') return Promise.resolve();
    this.#suspended ??= Promise.withResolvers();
    this.#bounds.suspensionAsked();
    this.send(makeFrame(FrameKind.suspend, { flags: 1 }));
    return this.#suspended.promise;
  }

  resume(): void {
    this.send(makeFrame(FrameKind.suspend));
  }

  #suspensionDone(): void {
    this.#suspended?.resolve();
    this.#suspended = null;
  }

  /** Gives the host up, and with it those that are reached through it. */
  lose(failure: Failure): void {
    if (this.isOver) return;
    this.#settle();
    this.#state = { name: 'lost', failure };
    this.#handler.lost(this, failure);
    void this.#connection?.close(true);
  }

  /** Resolves when no process of the connection is left on our side. */
  async close(): Promise<void> {
    await this.#connection?.close(false);
  }

  #receive(frame: Frame): void {
    if (this.isOver) return;
    try {
      this.#dispatch(frame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.lose(this.#lost('protocol', error.message));
    }
  }

  #dispatch(frame: Frame): void {
    switch (frame.kind) {
      case FrameKind.heartbeat:
        return this.#bounds.heartbeat();
      case FrameKind.hello:
        this.#bounds.hello();
        return this.#hello(parseHello(frame.payload));
      case FrameKind.failure:
        this.#bounds.report();
        return this.#report(parseReport(frame.payload));
      case FrameKind.suspend:
        this.#bounds.suspended();
        return this.#suspensionDone();
      case FrameKind.ended:
        if (this.#state.name !== 'ending') throw new ProtocolError('its ranks are ended, which nobody asked for');
        return this.#end(this.hello);
      default:
        if (frame.kind === FrameKind.output) this.#endBounds?.output(frame.payload.length);
        return this.#handler.frame(this, frame);
    }
  }

  #hello(hello: AgentHello): void {
    if (this.#state.name !== 'connecting') return;
    if (hello.jobId !== this.#order.jobId || hello.version !== this.#order.version) {
      const message = `an agent of job ${hello.jobId}, version ${hello.version} answered; ours is job ${this.#order.jobId}, version ${this.#order.version}`;
      this.lose(this.#agentFailure(message, 'install the same version on every host'));
      return;
    }
    this.#clockAheadMs = hello.time - Date.now();
    this.#state = { name: 'up', hello };
    this.#handler.hello(this);
  }

  #report(report: AgentReport): void {
    switch (report.type) {
      case 'notice':
        return this.#handler.notice(this, report.message);
      case 'start-notice':
        return this.#handler.startNotice(this, report.message);
      case 'tuning':
        return this.#handler.tuning(this, report);
      case 'out-of-memory':
      case 'rank-gpu':
        return this.#handler.ofEnd(this, report);
      case 'mpi-abort':
        return this.#handler.mpiAbort(this, report);
      case 'xid':
        return this.#handler.xid(this, report);
      case 'gpu-memory':
        return this.#handler.gpuMemory(this, report.gpus);
      case 'stalled':
      case 'rankPositions':
        return this.#handler.hang(this, report);
      case 'calls-differ':
      case 'left-behind':
      case 'last-position':
        return this.#handler.verdict(this, report);
      case 'listening':
      case 'reached':
        return this.#answered(report);
      case 'aggregating':
        return this.#aggregators?.resolve(report);
      case 'asked-to-end':
        return this.#handler.askedToEnd(this, report.signal);
      case 'refusal':
        return this.lose(this.#agentFailure(report.message, report.remedy));
      case 'gpus-busy':
        return this.lose({ type: 'gpus-busy', host: this.name, gpus: report.gpus });
      case 'silent':
      case 'launcher-silent':
        return this.lose(this.#lost(report.type, '', report.silentMs));
      case 'guardian-died':
        return this.lose(this.#lost('guardian-died', report.message));
      default:
        return report satisfies never;
    }
  }

  #end(hello: AgentHello | null): void {
    this.#settle();
    this.#state = { name: 'ended', hello };
    this.#handler.ended(this);
  }

  #closed({ problem, failure }: ConnectionEnd): void {
    if (this.isOver) return;
    if (this.#state.name === 'connecting') {
      this.lose(failure ?? this.#agentFailure(problem ?? 'the agent ended before it said hello', null));
    } else {
      this.lose(this.#lost('link-closed', problem ?? 'the connection to its agent ended'));
    }
  }

  #lost(cause: HostLostFailure['cause'], detail: string, silentMs: number | null = null): HostLostFailure {
    return { type: 'host-lost', host: this.name, cause, silentMs, detail };
  }

  #agentFailure(message: string, remedy: string | null): AgentFailure {
    return { type: 'agent', host: this.name, phase: 'hello', message, remedy };
  }
}
