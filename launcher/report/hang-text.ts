import type { Hang } from '../model/hang.ts';

/** One sentence; the ranks to blame come first. */
export function hangText({ verdict: { message, confidence } }: Hang): string {
  return confidence === 'suspected' ? `${message} (suspected)` : message;
}
