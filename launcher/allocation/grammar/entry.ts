/** What every grammar yields: one mention of one host. */
import type { SourcePosition } from '../../model/failure.ts';

export interface HostEntry {
  /** `exclude`: the host is not to be used, wherever else it is listed. */
  readonly kind: 'use' | 'exclude';
  /** Without user, brackets or count; of a range, one of its names. */
  readonly name: string;
  readonly user: string | null;
  readonly port: number | null;
  /** null: not stated. */
  readonly slots: number | null;
  /** The slots, if they stand behind a colon. */
  readonly colonCount?: number | null;
  readonly maxSlots: number | null;
  /** The name with its ranges as written (`node[01-04]`), or null if it has none. */
  readonly range: string | null;
  readonly position: SourcePosition;
}

/** `hosts:4`, or `-H`: where an entry stands, for sentences. */
export function locate({ source, line }: SourcePosition): string {
  return source.startsWith('-') ? source : `${source}:${line}`;
}
