/** Cuts a byte stream into lines; what follows the last newline waits for more. */
import { StringDecoder } from 'node:string_decoder';

export class LineSplitter {
  #decoder = new StringDecoder('utf8');
  #rest = '';

  push(bytes: Buffer): string[] {
    const lines = (this.#rest + this.#decoder.write(bytes)).split('\n');
    this.#rest = lines.pop() ?? '';
    return lines;
  }
}
