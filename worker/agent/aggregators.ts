/** The aggregators of a job on this host: processes of ours that end with the agent, if not before. */
import {
  decodeAggregatorUp,
  encodeAggregatorOrder,
  type AggregateAnswer,
  type AggregateOrder,
  type AggregatorUp,
} from '../../control/messages/aggregator.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { exitOf } from '../../control/messages/payload.ts';
import { messageOf } from '../../control/message-of.ts';
import type { PortRange } from '../../control/port-range.ts';
import { NativeLink } from '../engine/native-link.ts';
import type { Native } from '../engine/native.ts';
import { describeExit } from './describe-exit.ts';
import { aggregatorPath } from './installation.ts';

export class Aggregators {
  readonly #native: Native;
  readonly #portRange: PortRange | null;
  /** Receives a sentence about one that has ended though its agent has not. */
  readonly #lost: (message: string) => void;
  readonly #links: NativeLink[] = [];
  readonly #serving = new Set<NativeLink>();
  #isClosed = false;

  constructor(native: Native, portRange: PortRange | null, lost: (message: string) => void) {
    this.#native = native;
    this.#portRange = portRange;
    this.#lost = lost;
  }

  async start(order: AggregateOrder): Promise<AggregateAnswer> {
    const ports: number[] = [];
    const outcomes = await Promise.allSettled(Array.from({ length: order.count }, () => this.#startOne(order)));
    let problem: string | null = null;
    for (const outcome of outcomes) {
      if (outcome.status === 'fulfilled') ports.push(outcome.value);
      else problem = messageOf(outcome.reason);
    }
    return { type: 'aggregating', ports, problem };
  }

  /** They serve nobody any more. */
  close(): void {
    this.#isClosed = true;
    for (const link of this.#links) link.kill();
  }

  /** Resolves when none of their processes is left. */
  async ended(): Promise<void> {
    await Promise.all(this.#links.map((link) => link.died));
  }

  /** Resolves to its port. Rejects with the reason why it does not serve. */
  async #startOne(order: AggregateOrder): Promise<number> {
    const answered = Promise.withResolvers<AggregatorUp>();
    const link = new NativeLink(this.#native, (onEvent) => this.#native.childStart([aggregatorPath], onEvent));
    this.#links.push(link);
    link.open({ frame: ({ payload }) => answered.resolve(decodeAggregatorUp(payload)), closed: () => undefined });
    link.send(makeFrame(FrameKind.aggregatorOrder, { payload: encodeAggregatorOrder(order, this.#portRange) }));
    const { port, problem } = await Promise.race([answered.promise, this.#end(link)]);
    if (port === 0) throw new Error(problem);
    this.#serving.add(link);
    return port;
  }

  async #end(link: NativeLink): Promise<AggregatorUp> {
    const { waitStatus } = await link.died;
    link.release();
    const how = `an aggregator ${waitStatus === null ? 'is gone' : describeExit(exitOf(waitStatus))}`;
    if (this.#serving.has(link) && !this.#isClosed) this.#lost(`${how}; communicators that use it fail`);
    return { port: 0, problem: how };
  }
}
