import type { Hang, Verdict } from '../model/hang.ts';

/** One sentence; the ranks to blame come first. */
export function hangText({ verdict }: Hang): string {
  return verdictText(verdict);
}

export function verdictText({ message, confidence }: Verdict): string {
  return confidence === 'suspected' ? `${message} (suspected)` : message;
}

/** False where the failure or the event `waiting` says the same. */
export function isPrinted({ kind }: Verdict): boolean {
  return kind !== 'rank-dead' && kind !== 'host-silent' && kind !== 'init-missing';
}
