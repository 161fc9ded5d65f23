/**
 * What a rank contributes to a split of its communicator: i32 colour, i32 order, PeerInfo, u32 count, count × u32 rank that is left out; a count of
 * ALL_GONE without ranks leaves out whoever is gone.
 */
import { PEER_INFO_BYTES } from './bootstrap.ts';
import { ByteReader } from './bytes.ts';

export const ALL_GONE = 0xffff_ffff;

interface SplitContribution {
  readonly colour: number;
  readonly order: number;
  readonly peerInfo: Uint8Array;
  /** Ranks of the communicator that take no part, ascending. */
  readonly leftOut: readonly number[];
  /** All that have died or left the communicator for good take no part, whoever these are. */
  readonly withoutGone: boolean;
}

/** Of `rank` of `size`. Throws ProtocolError if it is malformed. */
export function readSplit(bytes: Uint8Array, size: number, rank: number): SplitContribution {
  const reader = new ByteReader(bytes, `split by rank ${rank}`);
  const [colour, order] = [reader.i32('colour'), reader.i32('order')];
  const peerInfo = reader.bytes(PEER_INFO_BYTES, 'peer info');
  const field = reader.u32('ranks left out');
  const withoutGone = field === ALL_GONE;
  const count = withoutGone ? 0 : field;
  const leftOut: number[] = [];
  for (let index = 0; index < count; index++) {
    const one = reader.u32('rank left out');
    if (one >= size || one === rank || one <= (leftOut.at(-1) ?? -1)) {
      throw reader.malformed(`rank ${one} of ${size} cannot be left out here`);
    }
    leftOut.push(one);
  }
  reader.end();
  return { colour, order, peerInfo, leftOut, withoutGone };
}
