/**
 * One job from its first host to its last. Everything that happens comes in as a frame, a signal, a timer or the end of a
 * connection, and is answered at once; the methods below are the arrows.
 *
 *   connecting ── every host said hello ──► spawning ── every rank started ──► running
 *        │                                     │                                  │
 *        └────────── failure, signal, --timeout ─────────► stopping ◄─────────────┤
 *                                                             │                   │ all ranks over
 *                                            all ranks over ──┴────► teardown ◄───┘
 *                                                                       │ all hosts over
 *                                                                       ▼
 *                                                                     over
 */
import { resolve } from 'node:path';
import type { Countdown } from '../../control/clock.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { decodeCredit, decodeSpawnFailed, encodeSignal } from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import type { Failure, Phase } from '../model/failure.ts';
import { Host } from './host.ts';
import type { HostHandler, MpiAbort } from './host.ts';
import { HostSet } from './host-set.ts';
import { outputWindow } from './order.ts';
import { JobFailures } from './job-failures.ts';
import type { JobParts, JobState, Rendezvous, UntimedEvent } from './job-parts.ts';
import { LazyRendezvous } from './lazy-rendezvous.ts';
import { OutputFlow } from './output-flow.ts';
import { describeEnd } from './rank.ts';
import type { RankState } from './rank.ts';
import { RankEnds } from './rank-ends.ts';
import { RankTable } from './rank-table.ts';
import { interruptText, leaveText, terminateText } from './signal-text.ts';
import { signalNumber } from '../model/signal-number.ts';
import { spawnFailure } from './spawn-failure.ts';
import { StartNotices } from './start-notices.ts';
import { StdinFlow } from './stdin-flow.ts';
import { failureOf } from './system-failure.ts';
import type { RankMap } from '../model/types.ts';

export class Job {
  /** What goes wrong is reported here. */
  readonly failures: JobFailures;
  readonly #parts: JobParts;
  readonly #output: OutputFlow;
  readonly #stdin: StdinFlow;
  readonly #notices = new StartNotices();
  readonly #ends = new RankEnds();
  readonly #allUp = Promise.withResolvers<void>();
  readonly #over = Promise.withResolvers<void>();
  readonly #hosts = new HostSet();
  readonly #rendezvous = new LazyRendezvous();
  #ranks = RankTable.none();
  #state: JobState = { name: 'connecting' };

  constructor(parts: JobParts, hostCount: number) {
    this.#parts = parts;
    this.#output = new OutputFlow(parts.reporter, outputWindow(hostCount), (error) => this.#outputFailed(error));
    this.#stdin = new StdinFlow(() => parts.reporter.typed?.());
    this.failures = new JobFailures({
      policy: parts.policy,
      clock: parts.clock,
      shrinks: parts.request.shrinks,
      ends: this.#ends,
      ranks: () => this.#ranks,
      state: () => this.#state,
      emit: (event) => this.emit(event),
      recorded: (failure) => parts.recorders.failed('rank' in failure ? [failure.rank] : []),
      decided: () => this.#terminateRanks(),
      judged: () => this.#checkOver(),
    });
  }

  /** Resolves when every host has said hello, or the job is ending before that. */
  get allUp(): Promise<void> {
    return this.#allUp.promise;
  }

  /** Resolves when no process of the job is left that we can reach, and its output has been taken. */
  get over(): Promise<void> {
    return this.#over.promise;
  }

  get state(): JobState {
    return this.#state;
  }

  /** Those that its ranks need. */
  get hosts(): readonly Host[] {
    return this.#hosts.needed;
  }

  /** Spares that cannot take a host's place any more, by name. */
  get lostSpares(): ReadonlySet<string> {
    return this.#hosts.lostSpares;
  }

  /** Resolves when no process of any connection is left on our side. */
  close(): Promise<void> {
    return this.#hosts.close();
  }

  get ranks(): readonly RankState[] {
    return this.#ranks.states;
  }

  /** How each host's news reach the job. */
  get handler(): HostHandler {
    return {
      hello: (host) => this.#hello(host),
      frame: (host, frame) => this.#frame(host, frame),
      notice: (host, message) => this.#notice(`${host.name}: ${message}`),
      startNotice: (host, message) => this.#startNotice(host.name, message),
      askedToEnd: (_host, signal) => {
        if (['connecting', 'spawning', 'running'].includes(this.#state.name)) this.terminate(signal); // all hosts say so
      },
      hang: (host, report) => {
        if (report.type === 'stalled') return this.#parts.hangs.stalled();
        this.#parts.positions.answered(host.name, report.where);
        return this.#parts.hangs.answered(host.name, report.where);
      },
      verdict: (host, report) => this.#parts.verdicts.report(host.name, report),
      tuning: (host, use) => this.emit({ ...use, type: 'tuning', host: host.name }),
      step: (host, step) => this.emit({ type: 'host-step', host: host.name, step }),
      remoteShell: (host, message) => this.emit({ type: 'host-remote-shell', host: host.name, message }),
      isHeldUp: (host) => this.#output.isHeldUp(host),
      ofEnd: (host, report) => this.#ends.report(this.#ranks.ofItsOwn(host, report)),
      mpiAbort: (host, report) => this.#mpiAbort(this.#ranks.ofItsOwn(host, report)),
      xid: (host, xid) => this.#parts.xids.receive(host, xid, this.#state),
      gpuMemory: (host, gpus) => this.#parts.memory.receive(host.name, gpus),
      staging: (host, bytes) => this.emit({ type: 'host-staging', host: host.name, bytes }),
      ended: (host) => this.#hostEnded(host),
      lost: (host, failure) => this.#hostLost(host, failure),
    };
  }

  emit(event: UntimedEvent): void {
    this.#parts.recorders.event(event);
    this.#parts.reporter.event({ ...event, time: Date.now() });
    this.#parts.verdicts.event(event);
  }

  /** `spares` follow once the ranks run. */
  connect(hosts: readonly Host[], spares: readonly Host[], startAgent: StartAgent): void {
    this.#hosts.connect(hosts, spares, startAgent, ({ name }) => this.emit({ type: 'host-connecting', host: name }));
  }

  /** Starts the ranks; `hosts.ranks` are the map's, in its order. Others that were asked for their slots are let go, but for `hosts.others`. */
  spawn(
    map: RankMap,
    { ranks: hosts, others }: { readonly ranks: readonly Host[]; readonly others: readonly Host[] },
    starts: readonly Parameters<Host['start']>[0][],
    rendezvous: () => Rendezvous,
  ): void {
    if (this.#state.name !== 'connecting') return;
    this.#state = { name: 'spawning' };
    this.#ranks = new RankTable(map, hosts);
    this.#rendezvous.expect(rendezvous, this.#ranks);
    for (const { rank, host } of map.ranks) {
      const stdinHost = hosts[host];
      if (stdinHost !== undefined && this.#parts.readsStdin(rank)) this.#stdin.expect(rank, stdinHost);
    }
    for (const host of this.#hosts.needed) if (this.#ranks.indexOf(host) === -1 && !others.includes(host)) host.end();
    for (const [index, host] of hosts.entries()) {
      const start = starts[index];
      if (start !== undefined) host.start(start);
    }
    this.#stdin.begin();
    // A host may be lost in the iteration of its hello, when it had no ranks to lose yet.
    const lost = hosts.filter((host) => host.isOver && this.#loseRanks(host));
    if (lost.length > 0) this.#checkRanksOver();
  }

  hostOf(rank: number): string {
    return this.#ranks.hostNameOf(rank);
  }

  /** Ranks wait for others that do not join them. */
  missing(what: string, missing: readonly string[], ranks: readonly number[], seconds: number): void {
    this.#parts.verdicts.missing(what, missing, ranks, seconds);
  }

  /** Ranks on a host. */
  ranksOn(host: string): readonly number[] {
    const found = this.hosts.find(({ name }) => name === host);
    return found === undefined ? [] : this.#ranks.of(found);
  }

  /** Hosts whose agents can say what their ranks recorded. */
  recordedHosts(): { readonly name: string; readonly ranks: readonly number[] }[] {
    const asked = this.hosts.filter(({ state }) => state.name === 'running' || state.name === 'ending');
    return asked
      .map((host) => ({ name: host.name, ranks: this.#ranks.of(host) }))
      .filter(({ ranks }) => ranks.length > 0);
  }

  /** The user's ^C: the ranks get it and take their time. */
  interrupt(): void {
    this.emit({ type: 'signal', signal: 'SIGINT', forwarded: this.#ranks.left > 0 });
    if (this.#ranks.left > 0) this.#notice(interruptText(this.#parts.request.graceSeconds));
    this.failures.interrupted('SIGINT');
    this.#signalRanks('SIGINT');
    this.#beginStopping(null);
  }

  terminate(signal: 'SIGINT' | 'SIGTERM' | 'SIGHUP'): void {
    this.emit({ type: 'signal', signal, forwarded: this.#ranks.left > 0 });
    if (this.#ranks.left > 0) this.#notice(terminateText(signal, this.#parts.request.graceSeconds));
    this.failures.interrupted(signal);
    this.#terminateRanks();
  }

  forward(signal: NodeJS.Signals): void {
    this.emit({ type: 'signal', signal, forwarded: this.#ranks.left > 0 });
    this.#signalRanks(signal);
  }

  /** A signal that the user does not want to be passed on. */
  ignore(signal: NodeJS.Signals): void {
    this.emit({ type: 'signal', signal, forwarded: false });
    this.#notice(`got ${signal}; it is not passed on (--forward-signals)`);
  }

  /** ^Z: no limit runs, nothing counts as silent, and the ranks stop too. Resolves when that is so; the caller stops this process next. */
  async suspend(ranks: boolean): Promise<void> {
    this.emit({ type: 'signal', signal: 'SIGTSTP', forwarded: ranks && this.#ranks.left > 0 });
    this.#parts.clock.stop();
    if (ranks) this.#signalRanks('SIGSTOP');
    this.#stdin.suspend();
    await this.#hosts.suspend();
  }

  resume(ranks: boolean): void {
    this.emit({ type: 'signal', signal: 'SIGCONT', forwarded: ranks && this.#ranks.left > 0 });
    this.#parts.clock.resume();
    this.#hosts.resume();
    if (ranks) this.#signalRanks('SIGCONT');
    this.#stdin.resume();
  }

  /** Who keeps the job from running, and the phase that they are in; nobody once it ran. */
  late(): string[] {
    if (this.#state.name === 'connecting')
      return this.hosts.filter(({ state }) => state.name === 'connecting').map(({ name }) => `${name} (connect)`);
    if (this.#state.name !== 'spawning') return [];
    return this.#ranks.states.flatMap((state, rank) =>
      state.name === 'waiting' ? [`rank ${rank} on ${this.hostOf(rank)} (spawn)`] : [],
    );
  }

  /** Gives up waiting for anybody. */
  leave(): void {
    if (this.#ranks.left > 0) this.#notice(leaveText);
    this.#finish();
  }

  #startNotice(host: string, message: string): void {
    this.#notices.add(host, message);
    if (this.#state.name !== 'spawning' || this.#notices.isFull) this.#tellNotices();
  }

  #tellNotices(): void {
    for (const message of this.#notices.take()) this.#notice(message);
  }

  #notice(message: string): void {
    this.emit({ type: 'notice', message });
  }

  #hello(host: Host): void {
    const { hello } = host;
    if (hello !== null) {
      const { cores, gpus, pid } = hello;
      this.emit({ type: 'host-up', host: host.name, cores, gpus, pid });
    }
    if (this.#hosts.isUp(host)) this.#allUp.resolve();
  }

  #frame(host: Host, frame: Frame): void {
    switch (frame.kind) {
      case FrameKind.output:
        this.#ranks.expectStarted(host, frame);
        this.#ends.output(frame);
        return this.#output.take(host, frame);
      case FrameKind.spawned:
        return this.#spawned(host, frame);
      case FrameKind.exited:
        return this.#exited(host, frame);
      case FrameKind.spawnFailed:
        return this.#spawnFailed(host, frame);
      case FrameKind.stdinCredit:
        this.#ranks.expectStarted(host, frame);
        return this.#stdin.credit(frame.subject, decodeCredit(frame.payload));
      case FrameKind.recorder:
        return this.#parts.recorders.receive(host.name, frame);
      case FrameKind.clock:
        return this.#parts.clocks.receive(host.name, frame);
      case FrameKind.stacks:
        return this.#parts.stacks.receive(host.name, frame);
      case FrameKind.merged:
      case FrameKind.routed:
      case FrameKind.left:
      case FrameKind.calls:
      case FrameKind.machineKey:
      case FrameKind.machine:
        return this.#rendezvous.get()?.receive(this.#ranks.indexWithRanks(host), frame);
      default:
        throw new ProtocolError(`a frame of kind ${frame.kind}`);
    }
  }

  #spawned(host: Host, frame: Frame): void {
    const { rank, pid } = this.#ranks.spawned(host, frame);
    this.emit({ type: 'rank-started', rank, host: host.name, pid });
    this.#stdin.started(rank);
    this.#checkRunning();
  }

  #exited(host: Host, frame: Frame): void {
    const { rank, exited } = this.#ranks.exited(
      host,
      frame,
      (time) => !this.#ends.hasAborted(frame.subject) && this.#endedByUs(host, time),
    );
    this.#stdin.drop(rank);
    const { exitCode, signal } = exited;
    this.emit({ type: 'rank-exited', rank, host: host.name, exitCode, signal });
    this.#rendezvous.rankEnded(rank, describeEnd(exited));
    const isExpected = exited.endedByUs || this.#ends.hasAborted(rank);
    const failure = isExpected ? null : this.#ends.failureOf(host.name, rank, exited);
    if (failure !== null) this.failures.ranksFailed(failure, exited.endedAt);
    else if (!isExpected) this.failures.endedWell(rank);
    this.failures.reconsider();
    this.#checkRanksOver();
  }

  /** The end of all ranks, whatever other failures mean. That of its own process follows. */
  #mpiAbort({ rank, exitCode, time }: MpiAbort): void {
    if (this.#state.name === 'stopping' || !this.#ends.abort(rank)) return;
    const host = this.hostOf(rank);
    this.failures.fail({ type: 'mpi-abort', host, rank, exitCode, stderrTail: this.#ends.lastWords(rank) }, time);
  }

  /** Whether a rank that ended at `time` had been asked to. Other hosts' clocks are not ours: there, what comes after counts as asked. */
  #endedByUs(host: Host, time: number): boolean {
    return this.#state.name === 'stopping' && (!host.slots.local || time >= this.#state.since);
  }

  #spawnFailed(host: Host, frame: Frame): void {
    const rank = this.#ranks.spawnFailed(host, frame);
    const { argv, workingDirectory } = this.#parts.request.programs[this.#ranks.programOf(rank)] ?? {};
    const [program = ''] = argv ?? [];
    this.#stdin.drop(rank);
    this.#rendezvous.rankEnded(rank, 'could not be started');
    const origin = { host: host.name, rank, program };
    this.failures.fail(spawnFailure(origin, resolve(workingDirectory ?? '.'), decodeSpawnFailed(frame.payload)));
    this.#checkRunning();
    this.#checkRanksOver();
  }

  #checkRunning(): void {
    if (!this.#ranks.allStarted || this.#state.name !== 'spawning') return;
    this.#state = { name: 'running' };
    this.#tellNotices();
    this.enter('run');
    this.#parts.stragglers.begin();
    this.#hosts.connectSpares();
  }

  #checkRanksOver(): void {
    if (this.#ranks.left === 0) this.#ranksOver();
  }

  /** Nothing runs any more. Failures of this iteration are judged first, so that their event precedes the teardown. */
  #ranksOver(): void {
    if (this.#state.name === 'teardown' || this.#state.name === 'over') return;
    this.#parts.hangStacks.close();
    if (this.#state.name === 'stopping') this.#state.kill?.cancel();
    this.#state = { name: 'teardown' };
    this.#tellNotices();
    this.enter('teardown');
    this.#allUp.resolve();
    this.#hosts.end();
    this.#checkOver();
  }

  #hostEnded(host: Host): void {
    this.emit({ type: 'host-ended', host: host.name });
    if (this.#loseRanks(host)) this.#checkRanksOver();
    this.#checkOver();
  }

  #hostLost(host: Host, failure: Failure): void {
    if (this.#state.name === 'over') return; // it is we who left
    if (this.#hosts.isSpare(host)) return this.#spareLost(host, failure);
    const anyLost = this.#loseRanks(host);
    const index = this.#ranks.indexOf(host);
    if (index !== -1) this.#rendezvous.get()?.hostLost(index, `was on ${host.name}, which was lost`);
    this.failures.ranksFailed(failure);
    if (anyLost) this.#checkRanksOver();
    this.#checkOver();
  }

  #spareLost(host: Host, failure: Failure): void {
    const message = 'message' in failure ? failure.message : 'detail' in failure ? failure.detail : '';
    this.#notice(`${host.name}, a spare, is lost${message === '' ? '' : `: ${message}`}`);
    this.#checkOver();
  }

  /** True: it had ranks left. */
  #loseRanks(host: Host): boolean {
    const lost = this.#ranks.lose(host);
    for (const rank of lost) this.#stdin.drop(rank);
    return lost.length > 0;
  }

  /** SIGTERM now, SIGKILL to whatever is left after the grace. */
  #terminateRanks(): void {
    this.#signalRanks('SIGTERM');
    this.#signalRanks('SIGCONT');
    this.#beginStopping(this.#parts.clock.after(this.#parts.request.graceSeconds * 1000, () => this.#hosts.end()));
  }

  #beginStopping(kill: Countdown | null): void {
    if (this.#state.name === 'teardown' || this.#state.name === 'over') {
      kill?.cancel();
      return;
    }
    this.#parts.hangs.close();
    const earlier = this.#state.name === 'stopping' ? this.#state : null;
    // Who asks again, or for less, does not give the ranks more time.
    if (earlier !== null && earlier.kill !== null) kill?.cancel();
    this.#state = { name: 'stopping', since: earlier?.since ?? Date.now(), kill: earlier?.kill ?? kill };
    this.#checkRanksOver();
  }

  #signalRanks(signal: NodeJS.Signals): void {
    const frame = makeFrame(FrameKind.signal, { subject: ALL_RANKS, payload: encodeSignal(signalNumber(signal)) });
    this.#hosts.send(frame);
  }

  #outputFailed(error: unknown): void {
    if (!this.failures.any) this.failures.fail(failureOf(error));
  }

  enter(phase: Phase): void {
    this.#parts.phases.enter(phase);
    this.emit({ type: 'phase', phase });
  }

  #checkOver(): void {
    if (this.#state.name !== 'teardown' || this.failures.isDue || !this.#hosts.areOver) return;
    this.failures.announceOpen();
    this.#finish();
  }

  #finish(): void {
    if (this.#state.name === 'over') return;
    if (this.#state.name === 'stopping') this.#state.kill?.cancel();
    this.failures.close();
    this.#state = { name: 'over' };
    this.#stdin.stop();
    this.#parts.hangs.close();
    this.#parts.hangStacks.close();
    this.#parts.verdicts.close();
    this.#parts.stragglers.close();
    this.#parts.positions.close();
    this.#parts.clocks.close();
    this.#parts.recorders.close();
    this.#parts.stacks.close();
    this.#parts.memory.close();
    this.#rendezvous.close();
    this.#allUp.resolve();
    this.#output.settled().then(this.#over.resolve, this.#over.reject);
  }
}
