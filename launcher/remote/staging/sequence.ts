/** The sequence of a host's staging messages: each once, and `next` as often as there is a piece to give (protocol.ts). */
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import { StagingMessage } from './protocol.ts';

/** A copy from the cache that does not start is followed by requests for another. */
const ORDER: readonly number[] = [
  StagingMessage.cached,
  StagingMessage.unpacker,
  StagingMessage.wanted,
  StagingMessage.staged,
  StagingMessage.failed,
];

export class StagingSequence {
  #position = -1;
  /** Pieces that the host has not asked for yet. */
  #left = 0;

  /** The host knows that it may ask for this many pieces. */
  offer(pieces: number): void {
    this.#left = pieces;
  }

  /** @throws ProtocolError for a message out of sequence */
  receive(word: number): void {
    if (word === StagingMessage.next) {
      if (this.#left === 0) throw new ProtocolError('it asks for a piece of ncclrun that was not offered');
      this.#left -= 1;
      return;
    }
    const position = ORDER.indexOf(word);
    if (position <= this.#position) throw new ProtocolError(`staging message ${word} out of order`);
    this.#position = position;
    this.#left = 0;
  }
}
