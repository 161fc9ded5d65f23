/** Sentences about where hosts and counts come from: for --explain, and for messages about too few slots. */
import type { SlotOrigin } from '../../model/types.ts';
import { locate, type HostEntry } from '../grammar/entry.ts';

/** Mentions told one by one before the rest becomes a number. */
const shown = 4;

/** `mentions` are those of one host, at least one. `slots`: their sum, or null if it is not known yet. */
export function slotOrigin(mentions: readonly HostEntry[], slots: number | null, unlimited: boolean): SlotOrigin {
  const host = several([...new Set(mentions.map(placeWithRange))]);
  const locations = several([...new Set(mentions.map(({ position }) => locate(position)))]);
  if (unlimited) return { kind: 'localhost-unlimited', text: 'localhost without a count has no limit', host };
  if (slots !== null) return { kind: 'stated', text: statedText(mentions, locations), host };
  return { kind: 'detected', text: `no count at ${locations}: as many as the host has GPUs, or cores if none`, host };
}

function statedText(mentions: readonly HostEntry[], locations: string): string {
  if (mentions.length === 1) return `stated at ${locations}`;
  return several(mentions.map((entry) => `${countOf(entry)} at ${locate(entry.position)}`));
}

function countOf({ slots }: HostEntry): string {
  return slots === null ? '1 (no count)' : String(slots);
}

function placeWithRange({ position, range }: HostEntry): string {
  return range === null ? locate(position) : `${locate(position)}, one of ${range}`;
}

function several(parts: readonly string[]): string {
  const named = parts.slice(0, shown);
  const rest = parts.length - named.length;
  return named.join(' + ') + (rest === 0 ? '' : ` + ${rest} more`);
}
