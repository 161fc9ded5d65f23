/** What rings and trees must keep. Sentences are made only when needed: this runs for every rank. */
import { check, PlanError } from './plan-error.ts';

type HostOf = (rank: number) => number;

/** Every rank once, and those of a host side by side. */
export function validateRing(ring: readonly number[], ranks: number, hostOf: HostOf, channel: number): void {
  const where = `channels[${channel}].ring`;
  check(ring.length === ranks, `${where}: has ${ring.length} entries for ${ranks} ranks`);
  const seen = new Uint8Array(ranks);
  for (const [index, rank] of ring.entries()) {
    // 0: not seen yet; 1: seen; undefined: no rank at all.
    if (seen[rank] === 0) seen[rank] = 1;
    else {
      const problem = seen[rank] === 1 ? `rank ${rank} comes twice` : `${rank} is no rank (0..${ranks - 1})`;
      throw new PlanError(`${where}[${index}]: ${problem}`);
    }
  }
  const entered = new Set<number>();
  let before = hostOf(ring.at(-1) ?? 0);
  for (const [index, rank] of ring.entries()) {
    const host = hostOf(rank);
    if (host !== before) {
      check(!entered.has(host), `${where}[${index}]: comes to the host of rank ${rank} a second time`);
      entered.add(host);
    }
    before = host;
  }
}

/** All ranks come to one top, and those of a host to one of theirs before they leave it. */
export function validateTree(tree: readonly number[], ranks: number, hostOf: HostOf, channel: number): void {
  const where = `channels[${channel}].tree`;
  check(tree.length === ranks, `${where}: has ${tree.length} entries for ${ranks} ranks`);
  const topOfHost = new Map<number, number>();
  for (const [rank, parent] of tree.entries()) {
    const isRank = Number.isInteger(parent) && parent >= 0 && parent < ranks;
    if (!isRank) throw new PlanError(`${where}[${rank}]: ${parent} is no rank (0..${ranks - 1})`);
    if (parent !== rank && hostOf(parent) === hostOf(rank)) continue;
    const other = topOfHost.get(hostOf(rank));
    if (other !== undefined)
      throw new PlanError(`${where}[${rank}]: ranks ${other} and ${rank} of one host have nobody of it above them`);
    topOfHost.set(hostOf(rank), rank);
  }
  let known: number[] = [];
  const comesToTop = Array.from({ length: ranks }, () => false);
  let tops = 0;
  for (const start of tree.keys()) {
    let rank = start;
    known = [];
    while (comesToTop[rank] === false) {
      check(known.length < ranks, `${where}[${rank}]: goes round in a circle`);
      known.push(rank);
      const parent = tree[rank] ?? rank;
      if (parent === rank) {
        tops += 1;
        break;
      }
      rank = parent;
    }
    for (const one of known) comesToTop[one] = true;
  }
  check(tops === 1, `${where}: ${tops} ranks have nobody above them, exactly one has to`);
}
