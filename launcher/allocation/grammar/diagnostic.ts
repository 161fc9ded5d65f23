/** Hostfile and host list errors: what is wrong, and exactly where. */
import type { SourcePosition } from '../../model/failure.ts';
import { FailureError } from '../../model/failure-error.ts';

/** One line of a hostfile, or the whole of a -H list (which counts as line 1). */
export interface SourceLine {
  /** The file's name as given, or `-H`. */
  readonly source: string;
  /** From 1. */
  readonly line: number;
  readonly text: string;
}

/** `offset` (from 0) and `length` count characters of `line.text`. */
export function positionIn(line: SourceLine, offset: number, length: number): SourcePosition {
  return { source: line.source, line: line.line, column: offset + 1, text: line.text, length: Math.max(1, length) };
}

export function hostfileError(message: string, position: SourcePosition | null, remedy: string | null): FailureError {
  return new FailureError({ type: 'hostfile', message, position, remedy });
}
