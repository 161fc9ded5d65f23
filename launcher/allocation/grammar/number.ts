/** Counts in hostfiles and host lists. */
import { hostfileError, positionIn, type SourceLine } from './diagnostic.ts';
import type { Token } from './tokenize.ts';

/** More slots than any host has; beyond it a typing error is likelier than a machine. */
export const maximumSlots = 65_536;

/** Throws a FailureError (hostfile) unless `token` is a whole number from 1 to 65536. */
export function parseSlots(token: Token, what: string, line: SourceLine): number {
  const value = /^[0-9]{1,9}$/u.test(token.text) ? Number(token.text) : 0;
  if (value >= 1 && value <= maximumSlots) return value;
  const position = positionIn(line, token.offset, token.text.length);
  if (/^0+$/u.test(token.text)) {
    throw hostfileError(`${what} is 0`, position, 'leave the host out, or write ^host in a hostfile to exclude it');
  }
  const seen = token.text === '' ? 'is missing' : `is "${token.text}"`;
  const remedy = /^(\*|auto|all|max|gpus?)$/iu.test(token.text)
    ? 'leave slots out: a host without a number has as many as it has GPUs, or cores if none'
    : `a whole number from 1 to ${maximumSlots} is wanted`;
  throw hostfileError(`${what} ${seen}`, position, remedy);
}

/** Throws a FailureError (hostfile) unless `token` is a TCP port. */
export function parsePort(token: Token, line: SourceLine): number {
  const value = /^[0-9]{1,5}$/u.test(token.text) ? Number(token.text) : 0;
  if (value >= 1 && value <= 65_535) return value;
  const position = positionIn(line, token.offset, token.text.length);
  throw hostfileError(`the port is "${token.text}"`, position, 'a whole number from 1 to 65535 is wanted');
}
