/** What a host's side of staging may say, and when: each thing once in its order, and `next` as often as there is something to give (protocol.ts). */
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import { StagingWord } from './protocol.ts';

/** In the order of the talk. A copy from the cache that does not start is followed by wishes for another. */
const ORDER: readonly number[] = [
  StagingWord.cached,
  StagingWord.unpacker,
  StagingWord.wanted,
  StagingWord.staged,
  StagingWord.failed,
];

export class StagingTurns {
  #turn = -1;
  /** Things to give that were not asked for yet. */
  #left = 0;

  /** The host knows that there is so much to ask for. */
  offer(pieces: number): void {
    this.#left = pieces;
  }

  /** @throws ProtocolError for a word out of its turn */
  hear(word: number): void {
    if (word === StagingWord.next) {
      if (this.#left === 0) throw new ProtocolError('it asks for a piece of ncclrun that was not offered');
      this.#left -= 1;
      return;
    }
    const turn = ORDER.indexOf(word);
    if (turn <= this.#turn) throw new ProtocolError(`it says word ${word} of staging out of its turn`);
    this.#turn = turn;
    this.#left = 0;
  }
}
