/**
 * Agents that are no processes: they say hello, start their ranks and end as soon as they are asked to, in this process. Every message goes through
 * the codec both ways, as over a link, and is counted.
 */
import { ByteWriter } from '../../control/messages/bytes.ts';
import { encodeFrame, encodeHeader, encodeJson, FrameDecoder, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, type Frame } from '../../control/messages/frame.ts';
import type { Key } from '../../control/messages/key.ts';
import type { AgentHello, AgentOrder, OrderedRank, Placement } from '../../control/messages/link.ts';
import { encodeMerged } from '../../control/messages/rendezvous-codec.ts';
import { JOIN_ROUND } from '../../control/messages/rendezvous.ts';
import type { AgentConnection, ConnectionHandler, StartAgent } from '../../launcher/remote/shell/connection.ts';
import { parseStart } from '../../control/link/validate.ts';
import { peerInfo } from '../../test/rig/rendezvous.ts';

/** What went over all links, both ways. */
export interface Traffic {
  messages: number;
  bytes: number;
}

const CORES = 8;
const NANOSECONDS = 1_000_000n;
const info = peerInfo();

export class SimulatedAgents {
  readonly traffic: Traffic = { messages: 0, bytes: 0 };
  readonly #agents: SimulatedAgent[] = [];
  readonly #planned = Promise.withResolvers<void>();
  #plans = 0;

  readonly start: StartAgent = (host, order, handler) => {
    const agent = new SimulatedAgent(host.name, order, handler, this.traffic, () => this.#plan());
    this.#agents.push(agent);
    return agent;
  };

  /** The ranks of all hosts join one communicator. Resolves when every host has its plan. */
  async join(): Promise<void> {
    const size = this.#agents.reduce((sum, { ranks }) => sum + ranks.length, 0);
    for (const agent of this.#agents) agent.join(size);
    await this.#planned.promise;
  }

  exit(): void {
    for (const agent of this.#agents) agent.exit();
  }

  #plan(): void {
    this.#plans += 1;
    if (this.#plans === this.#agents.length) this.#planned.resolve();
  }
}

class SimulatedAgent implements AgentConnection {
  readonly #name: string;
  readonly #order: AgentOrder;
  readonly #traffic: Traffic;
  readonly #decoder: FrameDecoder;
  readonly #planned: () => void;
  #placement: Placement | null;

  constructor(name: string, order: AgentOrder, handler: ConnectionHandler, traffic: Traffic, planned: () => void) {
    this.#name = name;
    this.#order = order;
    this.#placement = order.placement;
    this.#traffic = traffic;
    this.#planned = planned;
    this.#decoder = new FrameDecoder((frame) => handler.frame(frame));
    this.send(makeFrame(FrameKind.order, { payload: encodeJson(order) }));
    setImmediate(() => this.#hello());
  }

  get ranks(): readonly OrderedRank[] {
    return this.#placement?.ranks ?? [];
  }

  /** From the launcher. */
  send(frame: Frame): void {
    this.#count(encodeHeader(frame).length + frame.payload.length);
    if (frame.kind === FrameKind.start) {
      this.#placement ??= parseStart(frame.payload).placement;
      setImmediate(() => this.#spawn());
    } else if (frame.kind === FrameKind.hostPlan) this.#planned();
    else if (frame.kind === FrameKind.end) setImmediate(() => this.#say(FrameKind.ended));
  }

  join(size: number): void {
    const key: Key = {
      id: Buffer.from(this.#order.uniqueId, 'base64').toString('latin1'),
      epoch: this.#order.epoch,
      round: JOIN_ROUND,
    };
    const entries = this.ranks.map(({ rank }) => ({ rank, jobRank: rank, pid: pidOf(rank), bytes: info }));
    this.#say(FrameKind.merged, 0, encodeMerged({ key, size, entries }));
  }

  exit(): void {
    for (const { rank } of this.ranks) this.#say(FrameKind.exited, rank, new ByteWriter().i32(0).u64(now()).finish());
  }

  async close(): Promise<void> {
    // nothing of it is anywhere else
  }

  #hello(): void {
    const { version, jobId } = this.#order;
    const hello: AgentHello = {
      schemaVersion: 1,
      version,
      jobId,
      hostName: this.#name,
      bootId: this.#name,
      clockId: null,
      pid: 9,
      cores: CORES,
      gpus: 0,
      topology: null,
      nodeVersion: process.version,
      addresses: ['10.0.0.1'],
      nics: [],
      verbs: null,
      launcherAddress: '10.0.0.254',
      preflight: { kernel: '6.1', 'open files': '1048576' },
      hardware: { processor: 'Abacus', gpu: null, driver: null },
      time: Date.now(),
      freePort: 40_000,
    };
    this.#say(FrameKind.hello, 0, encodeJson(hello));
  }

  #spawn(): void {
    for (const { rank } of this.ranks)
      this.#say(FrameKind.spawned, rank, new ByteWriter().u32(pidOf(rank)).u64(now()).finish());
  }

  #say(kind: FrameKind, subject = 0, payload: Uint8Array = new Uint8Array(0)): void {
    const bytes = encodeFrame(makeFrame(kind, { subject, payload }));
    this.#count(bytes.length);
    this.#decoder.push(bytes);
  }

  #count(bytes: number): void {
    this.#traffic.messages += 1;
    this.#traffic.bytes += bytes;
  }
}

const pidOf = (rank: number): number => 1000 + rank;

const now = (): bigint => BigInt(Date.now()) * NANOSECONDS;
