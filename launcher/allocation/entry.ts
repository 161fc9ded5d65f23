/** What every grammar yields: one mention of one host. */
import type { SourcePosition } from '../job/failure.ts';

export interface HostEntry {
  /** `exclude`: the host is not to be used, wherever else it is listed. */
  readonly kind: 'use' | 'exclude';
  /** As written, without user, brackets or count. */
  readonly name: string;
  readonly user: string | null;
  readonly port: number | null;
  /** null: not stated. */
  readonly slots: number | null;
  readonly maxSlots: number | null;
  readonly position: SourcePosition;
}
