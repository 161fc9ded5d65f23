/**
 * What has been tried on one machine. Two attempts whose speeds fill every link equally often take the same steps: with 20 and with 18 GB/s
 * a link of 40 carries two channels. And patterns differ only where channels leave the host. So the second need not be gone.
 */
import type { Candidates } from './candidates.ts';
import { ChannelSearch } from './channels.ts';
import type { Attempt, SearchResult } from './channels.ts';
import { LinkUnits } from './link-units.ts';
import { areReferencesAlike } from './step-budget.ts';

interface Tried {
  readonly candidates: Candidates;
  readonly attempt: Attempt;
  readonly bound: number;
  readonly steps: number;
  readonly result: SearchResult;
  /** Load of the links; undefined until first needed. */
  carried: readonly number[] | null | undefined;
}

export class SearchAttempts {
  readonly #tried: Tried[] = [];
  #units: LinkUnits | null = null;

  /** `bound`: more channels cannot be; `steps`: the most that are spent. */
  run(candidates: Candidates, attempt: Attempt, bound: number, steps: number): SearchResult {
    let carried: readonly number[] | null | undefined;
    for (let i = 0; i < this.#tried.length; i++) {
      const one = this.#tried[i];
      if (one === undefined || one.candidates !== candidates || one.bound !== bound) continue;
      if (!isAlike(one.attempt, attempt, candidates) || !isAnswerFor(one, steps)) continue;
      if (one.attempt.inside === attempt.inside && one.attempt.between === attempt.between) return one.result;
      if (attempt.bothDirections) continue;
      this.#units ??= new LinkUnits(candidates);
      if (one.carried === undefined) one.carried = this.#units.carried(one.attempt, bound);
      if (carried === undefined) carried = this.#units.carried(attempt, bound);
      if (areEqual(one.carried, carried)) return one.result;
    }
    const result = new ChannelSearch(candidates, attempt, bound, steps).run();
    this.#tried.push({ candidates, attempt, bound, steps, result, carried });
    return result;
  }
}

/** All but the speeds. */
function isAlike(one: Attempt, other: Attempt, candidates: Candidates): boolean {
  if (one.acrossHosts !== other.acrossHosts || one.distanceInside !== other.distanceInside) return false;
  if (one.sameChannels !== other.sameChannels || one.bothDirections !== other.bothDirections) return false;
  if (one.pattern === other.pattern) return one.pattern !== 'collnetDirect' && one.crossNic === other.crossNic;
  return !one.acrossHosts && !candidates.hasSwitch && isTree(one) && isTree(other);
}

function isTree({ pattern }: Attempt): boolean {
  return pattern !== 'ring' && pattern !== 'collnetDirect';
}

/** With so many steps it would have ended where it ended. */
function isAnswerFor({ steps, result }: Tried, given: number): boolean {
  if (steps === given) return true;
  return result.steps < Math.min(steps, given) && areReferencesAlike(steps, given);
}

function areEqual(one: readonly number[] | null, other: readonly number[] | null): boolean {
  if (one === null || other === null) return false;
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;
  return true;
}
