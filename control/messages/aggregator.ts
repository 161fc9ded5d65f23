/** Messages that start the aggregators of a job (--collnet). The aggregator's side is native/aggregator/process.cc. */
import { portRangeText, type PortRange } from '../port-range.ts';
import { ByteReader, ByteWriter } from './bytes.ts';

/** Of a job. */
export const MAX_AGGREGATORS = 1024;

/** Payload of FrameKind.aggregate. */
export interface AggregateOrder {
  readonly count: number;
  /** Numeric, of the host that gets the order: where other hosts reach it. */
  readonly address: string;
  /** 32 hexadecimal digits, which members of the job know. */
  readonly token: string;
}

/** The answer, an AgentReport. */
export interface AggregateAnswer {
  readonly type: 'aggregating';
  /** On which they listen. */
  readonly ports: readonly number[];
  /** Why it is not all of them: a sentence; null: it is. */
  readonly problem: string | null;
}

export interface AggregatorUp {
  /** On which it listens; 0: it does not. */
  readonly port: number;
  /** Why it does not. */
  readonly problem: string;
}

export function encodeAggregatorOrder(
  { address, token }: Omit<AggregateOrder, 'count'>,
  portRange: PortRange | null,
): Uint8Array {
  const range = portRange === null ? '' : portRangeText(portRange);
  return new ByteWriter(64).bytes(Buffer.from(token, 'hex')).string(address).string(range).finish();
}

export function decodeAggregatorUp(payload: Uint8Array): AggregatorUp {
  const reader = new ByteReader(payload, 'aggregatorUp');
  const up = { port: reader.u32('port'), problem: reader.string('problem') };
  reader.end();
  return up;
}
