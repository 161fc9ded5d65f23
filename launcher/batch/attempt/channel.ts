/** What a scheduler and one of its launchers tell each other, a line of JSON each, on a socket that ends with either of them. */
import type { Duplex } from 'node:stream';
import * as v from 'valibot';

/** The launcher is to run an attempt. */
const attemptCall = v.object({
  /** Where the attempt has its files. */
  directory: v.string(),
  /** The file that gets all that the launcher prints; null: its standard streams are that file. */
  output: v.nullable(v.string()),
  /** The launcher exits after it. */
  isLast: v.boolean(),
});
export type AttemptCall = v.InferOutput<typeof attemptCall>;

/**
 * begun: the launcher has decided that the attempt starts. running: its ranks have started. ended: the launcher has written how the attempt ended, and
 * waits for another one.
 */
const attemptNews = v.picklist(['begun', 'running', 'ended']);
export type AttemptNews = v.InferOutput<typeof attemptNews>;

export function callIn(line: string): AttemptCall {
  return v.parse(attemptCall, JSON.parse(line));
}

export function newsIn(line: string): AttemptNews {
  return v.parse(attemptNews, JSON.parse(line));
}

/** Nothing happens where nobody is left at the other end, whose end says enough. */
export function tell(socket: Duplex, message: AttemptCall | AttemptNews): void {
  socket.write(`${JSON.stringify(message)}\n`, () => {});
}

export function eachLine(socket: Duplex, onLine: (line: string) => void): void {
  let rest = '';
  socket.setEncoding('utf8');
  socket.on('error', () => {});
  socket.on('data', (text: string) => {
    const lines = `${rest}${text}`.split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) onLine(line);
  });
}
