/** Which faults are planted where: all of them, or a part. */
import { COLLECTIVES, FAULTS } from './fault.ts';
import { RANKS } from './play.ts';
import type { Case } from './play.ts';

/** `replays`: in replays of a graph. */
export function allCases(replays: boolean): Case[] {
  return COLLECTIVES.flatMap((collective) =>
    FAULTS.filter((fault) => fault.of.includes(collective) && (!replays || fault.replays)).flatMap((fault) =>
      Array.from({ length: RANKS }, (_, rank) => ({ fault, collective, rank, replays })),
    ),
  );
}
