/**
 * The PMI-1 server of a host's ranks, which MPICH's and Intel's MPI libraries ask for their size, for keys and for barriers. The guardian passes
 * on the bytes of each rank's connection. A barrier is a round of the rendezvous: every rank contributes the keys that it has put, and gets
 * those of all.
 */
import { decodeCompleted, decodeKeyFailed, tableRows } from '../../control/messages/rendezvous-codec.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, PMI_CLOSE, PMI_READ } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder, AgentReport, Placement } from '../../control/messages/link.ts';
import { PMI_ID } from '../../control/messages/pmi-id.ts';
import type { Exit } from '../../control/messages/payload.ts';
import { decodePuts, encodePuts } from '../../control/messages/pmi.ts';
import type { PmiPuts } from '../../control/messages/pmi.ts';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { contributionsByRank } from '../../control/rendezvous/rules.ts';
import type { RendezvousFailure } from '../../control/rendezvous/failure.ts';
import { FLUSH_AFTER_MS, PendingGathers } from './pending-gathers.ts';
import { PmiClient } from './pmi/client.ts';
import { KeySpace } from './pmi/key-space.ts';

/** Time for the launcher to end the ranks of a barrier that failed. */
const CLOSE_AFTER_MS = 1000;
const SIGPIPE = 13;

interface PmiServerOptions {
  readonly order: Pick<AgentOrder, 'jobId' | 'epoch' | 'hostName'>;
  readonly placement: Placement;
  /** To the guardian. */
  send(frame: Frame): void;
  /** To the launcher. */
  sendUp(frame: Frame): void;
  report(report: AgentReport): void;
}

/** A rank that waits in a barrier. */
interface Waiter {
  readonly engine: { readonly jobRank: number; readonly pid: number };
  readonly rank: number;
}

export class PmiServer {
  readonly #options: PmiServerOptions;
  readonly #clients = new Map<number, PmiClient>();
  readonly #closed = new Set<number>();
  readonly #ended = new Set<number>();
  readonly #barriers: PendingGathers<Waiter>;
  readonly #keys = new KeySpace();
  /** Closes connections whose ranks wait in vain. */
  readonly #closings = new Set<NodeJS.Timeout>();

  constructor(options: PmiServerOptions) {
    this.#options = options;
    const { order, placement } = options;
    this.#barriers = new PendingGathers<Waiter>({
      hostIndex: placement.hostIndex,
      hostName: order.hostName,
      epoch: order.epoch,
      localRanks: () => placement.ranks.length - this.#ended.size,
      flushAfterMs: placement.hostCount === 1 ? FLUSH_AFTER_MS.oneHost : FLUSH_AFTER_MS.severalHosts,
      completesHere: () => true,
      goneHere: () => null,
      sendUp: (frame) => options.sendUp(frame),
      complete: (gather, waiters) => this.#release(contributionsByRank(gather), waiters),
      refuse: (waiters, failure) => this.#fail(waiters, failure),
    });
    for (const { rank, program } of placement.ranks) this.#clients.set(rank, this.#client(rank, program));
  }

  /** Bytes of a rank. */
  receive({ subject: rank, payload }: Frame): void {
    const client = this.#clients.get(rank);
    if (client === undefined || this.#closed.has(rank)) return;
    try {
      client.receive(payload);
      this.#answer(rank, '', PMI_READ);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      this.#close(rank);
      this.#notice(rank, `sent its PMI server (MPI) ${error.message}; the connection is closed`);
    }
  }

  /** True if the launcher's frame is the answer to a barrier. @throws ProtocolError if it is malformed */
  answered(frame: Frame): boolean {
    if (frame.kind === FrameKind.completed) {
      const { key, table } = decodeCompleted(frame.payload);
      if (key.id !== PMI_ID) return false;
      this.#release(tableRows(table), this.#barriers.take(key));
      return true;
    }
    if (frame.kind !== FrameKind.keyFailed) return false;
    const { key, ...failure } = decodeKeyFailed(frame.payload);
    if (key.id !== PMI_ID) return false;
    this.#fail(this.#barriers.take(key), failure);
    return true;
  }

  /** The launcher learns of it next, and must know by then who waits for the rank. */
  rankEnded(rank: number, { exitCode, signalNumber }: Exit): void {
    const wroteInVain = signalNumber === SIGPIPE || exitCode === 128 + SIGPIPE;
    if (wroteInVain && this.#clients.get(rank)?.hasFinalized === true)
      this.#notice(rank, 'ran another MPI program after MPI_Finalize: a rank can run one, so start ncclrun for each');
    this.#ended.add(rank);
    this.#closed.add(rank);
    this.#barriers.flushAll();
  }

  close(): void {
    for (const closing of this.#closings) clearTimeout(closing);
    this.#barriers.close();
  }

  #client(rank: number, ofJob: number): PmiClient {
    const { order, placement } = this.#options;
    return new PmiClient({
      size: placement.rankCount,
      program: ofJob,
      mapping: placement.pmi ?? '',
      keySpaceName: `kvs_${order.jobId}_${order.epoch}`,
      get: (key) => this.#keys.get(key),
      put: (key, value) => this.#keys.put(key, value),
      send: (lines) => this.#answer(rank, lines, 0),
      barrier: (barrier, puts) => this.#barrier(rank, barrier, puts),
      abort: (exitCode) =>
        this.#options.report({ type: 'mpi-abort', rank, exitCode: exitCode & 0xff || 1, time: Date.now() }),
      notice: (sentence) => this.#notice(rank, sentence),
    });
  }

  #barrier(rank: number, barrier: number, puts: PmiPuts): void {
    const key = { id: PMI_ID, epoch: this.#options.order.epoch, round: barrier };
    const size = this.#options.placement.rankCount;
    this.#barriers.add({ key, size, bytes: encodePuts(puts) }, { engine: { jobRank: rank, pid: 0 }, rank });
  }

  #release(contributions: readonly Uint8Array[], waiters: readonly Waiter[]): void {
    for (const contribution of contributions) {
      for (const [name, value] of decodePuts(contribution)) this.#keys.put(name, value);
    }
    for (const { rank } of waiters) {
      if (!this.#closed.has(rank)) this.#clients.get(rank)?.released();
    }
  }

  /** Ranks that wait in vain find their connections closed, with which their MPI libraries fail: mostly the job ends before that. */
  #fail(waiters: readonly Waiter[], { result, sentence }: RendezvousFailure): void {
    const [first] = waiters;
    if (first === undefined) return;
    if (result !== NcclResult.remoteError) this.#notice(first.rank, `cannot pass its PMI barrier (MPI): ${sentence}`);
    const closing = setTimeout(() => {
      this.#closings.delete(closing);
      for (const { rank } of waiters) if (!this.#closed.has(rank)) this.#close(rank);
    }, CLOSE_AFTER_MS);
    this.#closings.add(closing);
  }

  #close(rank: number): void {
    this.#closed.add(rank);
    this.#answer(rank, '', PMI_CLOSE);
  }

  #answer(rank: number, lines: string, flags: number): void {
    this.#options.send(makeFrame(FrameKind.pmi, { subject: rank, flags, payload: Buffer.from(lines, 'latin1') }));
  }

  #notice(rank: number, sentence: string): void {
    this.#options.report({ type: 'notice', message: `rank ${rank} ${sentence}` });
  }
}
