import type { Hang, Verdict, VerdictKind } from '../model/hang.ts';

/** One sentence; the ranks to blame come first. */
export function hangText({ verdict }: Hang): string {
  return verdictText(verdict);
}

export function verdictText({ message, confidence }: Verdict): string {
  return confidence === 'suspected' ? `${message} (suspected)` : message;
}

const SAID_OTHERWISE: ReadonlySet<VerdictKind> = new Set(['rank-dead', 'host-silent', 'init-missing', 'left']);

/** False where the failure, the event `waiting` or the ranks, which were told, say the same. */
export function isPrinted({ kind }: Verdict): boolean {
  return !SAID_OTHERWISE.has(kind);
}
