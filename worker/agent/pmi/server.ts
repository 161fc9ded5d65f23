/**
 * The PMI-1 server of a host's ranks, which MPICH's and Intel's MPI libraries ask for their size, for keys and for barriers. The guardian passes
 * on the bytes of each rank's connection. A barrier is a round of the rendezvous: every rank contributes the keys that it has put, and gets
 * those of all.
 */
import { decodeCompleted, decodeKeyFailed, tableRows } from '../../../control/messages/rendezvous-codec.ts';
import { makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind, PMI_CLOSE, PMI_READ } from '../../../control/messages/frame.ts';
import type { Frame } from '../../../control/messages/frame.ts';
import type { AgentOrder, AgentReport, Placement } from '../../../control/messages/link.ts';
import { isPmiId, pmiId } from '../../../control/messages/pmi-id.ts';
import { decodePuts, encodePuts } from '../../../control/messages/pmi.ts';
import type { PmiPuts } from '../../../control/messages/pmi.ts';
import { NcclResult } from '../../../control/messages/bootstrap.ts';
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import { contributionsByRank } from '../../../control/rendezvous/rules.ts';
import type { RendezvousFailure } from '../../../control/rendezvous/failure.ts';
import { FLUSH_AFTER_MS, PendingGathers } from '../pending-gathers.ts';
import { PmiClient } from './client.ts';
import { KeySpace } from './key-space.ts';

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
  /** By program, as pmiId counts them. */
  readonly #spaces = new Map<number, KeySpace>();

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
      if (!isPmiId(key.id)) return false;
      this.#release(tableRows(table), this.#barriers.take(key));
      return true;
    }
    if (frame.kind !== FrameKind.keyFailed) return false;
    const { key, ...failure } = decodeKeyFailed(frame.payload);
    if (!isPmiId(key.id)) return false;
    this.#fail(this.#barriers.take(key), failure);
    return true;
  }

  /** The launcher learns of it next, and must know by then who waits for the rank. */
  rankEnded(rank: number): void {
    this.#ended.add(rank);
    this.#closed.add(rank);
    this.#barriers.flushAll();
  }

  close(): void {
    this.#barriers.close();
  }

  #client(rank: number, ofJob: number): PmiClient {
    const { order, placement } = this.#options;
    return new PmiClient({
      size: placement.rankCount,
      program: ofJob,
      mapping: placement.pmi ?? '',
      keySpaceName: (program) => `kvs_${order.jobId}_${order.epoch}_${program}`,
      get: (program, key) => this.#spaces.get(program)?.get(key),
      put: (program, key, value) => this.#space(program).put(key, value),
      send: (lines) => this.#answer(rank, lines, 0),
      barrier: (program, barrier, puts) => this.#barrier(rank, { program, barrier, puts }),
      abort: (exitCode) =>
        this.#options.report({ type: 'mpi-abort', rank, exitCode: exitCode & 0xff || 1, time: Date.now() }),
      notice: (sentence) => this.#notice(rank, sentence),
    });
  }

  /** That of a new program replaces those that no rank of this host uses any more. */
  #space(program: number): KeySpace {
    const known = this.#spaces.get(program);
    if (known !== undefined) return known;
    const oldest = Math.min(...[...this.#clients.values()].map((client) => client.program));
    for (const old of this.#spaces.keys()) if (old < oldest) this.#spaces.delete(old);
    const space = new KeySpace();
    this.#spaces.set(program, space);
    return space;
  }

  #barrier(
    rank: number,
    { program, barrier, puts }: { readonly program: number; readonly barrier: number; readonly puts: PmiPuts },
  ): void {
    const key = { id: pmiId(program), epoch: this.#options.order.epoch, round: barrier };
    const size = this.#options.placement.rankCount;
    this.#barriers.add({ key, size, bytes: encodePuts(puts) }, { engine: { jobRank: rank, pid: 0 }, rank });
  }

  #release(contributions: readonly Uint8Array[], waiters: readonly Waiter[]): void {
    const [first] = waiters;
    const program = first === undefined ? undefined : this.#clients.get(first.rank)?.program;
    if (program === undefined) return;
    const space = this.#space(program);
    for (const contribution of contributions) {
      for (const [name, value] of decodePuts(contribution)) space.put(name, value);
    }
    for (const { rank } of waiters) {
      if (!this.#closed.has(rank)) this.#clients.get(rank)?.released();
    }
  }

  /** A rank that waits for others in vain finds its connection closed, with which its MPI library fails. */
  #fail(waiters: readonly Waiter[], { result, sentence }: RendezvousFailure): void {
    for (const { rank } of waiters) {
      if (this.#closed.has(rank)) continue;
      this.#close(rank);
      if (result !== NcclResult.remoteError) this.#notice(rank, `cannot pass its PMI barrier (MPI): ${sentence}`);
    }
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
