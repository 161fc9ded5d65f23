/**
 * PMI-1's lines: `cmd=NAME key=value …`, and `mcmd=NAME`, further lines and `endcmd` for what has several. The ranks' lines are outside
 * input: a line has at most MAX_LINE_BYTES, and only printable ASCII.
 */
import { ProtocolError } from '../../../control/messages/protocol-error.ts';

/** MPICH's lines have at most 4096 bytes. */
const MAX_LINE_BYTES = 8192;
/** Maximum number of lines of an mcmd, which spawns programs and lists their arguments. */
const MAX_MANY_LINES = 10_000;
/** Maximum of the bytes of these lines, so that a rank cannot exhaust the agent's memory. */
const MAX_MANY_BYTES = 1024 * 1024;

export interface PmiCommand {
  readonly name: string;
  readonly fields: ReadonlyMap<string, string>;
}

/** An mcmd, whose fields follow in lines of their own. */
interface Many {
  readonly name: string;
  readonly fields: Map<string, string>;
  lines: number;
  bytes: number;
}

/** Cuts the bytes of one rank into commands. */
export class CommandReader {
  #begun = '';
  /** Of an mcmd whose endcmd has not come. */
  #many: Many | null = null;

  /** @throws ProtocolError if a line is malformed; what came before it is lost, too */
  read(bytes: Uint8Array): PmiCommand[] {
    const text = this.#begun + Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    const lines = text.split('\n');
    this.#begun = lines.pop() ?? '';
    if ([...lines, this.#begun].some((line) => line.length > MAX_LINE_BYTES))
      throw new ProtocolError(`a line of more than ${MAX_LINE_BYTES} bytes`);
    return lines.flatMap((line) => this.#command(line) ?? []);
  }

  #command(line: string): PmiCommand | null {
    if (/[^ -~\t]/u.test(line)) throw new ProtocolError('a line with bytes that are not printable ASCII');
    if (this.#many !== null) return this.#continue(this.#many, line);
    if (line.trim() === '') return null;
    const fields = fieldsOf(line);
    const name = fields.get('cmd');
    if (name !== undefined) return { name, fields };
    const many = fields.get('mcmd');
    if (many === undefined) throw new ProtocolError(`a line without a command: "${line.slice(0, 80)}"`);
    this.#many = { name: many, fields, lines: 0, bytes: 0 };
    return null;
  }

  #continue(many: Many, line: string): PmiCommand | null {
    if (line.trim() === 'endcmd') {
      this.#many = null;
      return many;
    }
    many.lines += 1;
    many.bytes += line.length;
    if (many.bytes > MAX_MANY_BYTES) throw new ProtocolError(`an mcmd of more than ${MAX_MANY_BYTES} bytes`);
    if (many.lines > MAX_MANY_LINES) throw new ProtocolError(`an mcmd of more than ${MAX_MANY_LINES} lines`);
    const equals = line.indexOf('=');
    if (equals > 0) many.fields.set(line.slice(0, equals), line.slice(equals + 1));
    return null;
  }
}

/** Words without a '=' say nothing. */
function fieldsOf(line: string): Map<string, string> {
  const fields = new Map<string, string>();
  for (const word of line.split(/[ \t]+/u)) {
    const equals = word.indexOf('=');
    if (equals > 0) fields.set(word.slice(0, equals), word.slice(equals + 1));
  }
  return fields;
}

/** A line to the rank. */
export function answerLine(name: string, fields: Readonly<Record<string, string | number>> = {}): string {
  return `${[`cmd=${name}`, ...Object.entries(fields).map(([key, value]) => `${key}=${value}`)].join(' ')}\n`;
}
