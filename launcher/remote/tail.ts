/** The end of a stream's text: enough to tell what a remote shell complained of. */
import type { Readable } from 'node:stream';

const MAX_CHARACTERS = 4096;

export class Tail {
  #text = '';

  constructor(stream: Readable) {
    stream.setEncoding('utf8');
    stream.on('data', (text: string) => {
      this.#text = (this.#text + text).slice(-MAX_CHARACTERS);
    });
    stream.on('error', () => {});
  }

  get text(): string {
    return this.#text;
  }
}
