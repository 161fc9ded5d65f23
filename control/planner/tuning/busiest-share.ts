/**
 * How many of a communicator's groups one aggregator serves. Which aggregator serves a group follows from a hash that the planner does not know: so the
 * busiest one has as many groups as, on average, the fullest of as many bins has balls; and it may be any of the aggregators.
 */

/** Beyond so many groups an estimate is close, and takes no time. */
const MOST_COUNTED = 32;

const known = new Map<string, number>();

/** The busiest aggregator's part of the groups: from its equal share to 1. */
export function busiestShare(groups: number, aggregators: number): number {
  const key = `${groups} ${aggregators}`;
  const share = known.get(key) ?? (groups > MOST_COUNTED ? estimated : counted)(groups, aggregators) / groups;
  known.set(key, share);
  return share;
}

function counted(balls: number, bins: number): number {
  let expected = 0;
  for (let most = 0; most < balls; most++) expected += 1 - chanceOfAtMost(most, balls, bins);
  return expected;
}

/** The chance that no bin has more than `most` balls: of all ways to throw them, those that fill each bin with a few. */
function chanceOfAtMost(most: number, balls: number, bins: number): number {
  // By number of balls: the sum, over how the bins used so far may have them, of 1 ÷ the product of the factorials.
  let ways = [1, ...Array.from({ length: balls }, () => 0)];
  for (let bin = 0; bin < bins; bin++) ways = ways.map((_, total) => withOneBin(ways, total, most));
  let chance = ways[balls] ?? 0;
  for (let ball = 1; ball <= balls; ball++) chance *= ball / bins;
  return chance;
}

function withOneBin(ways: readonly number[], total: number, most: number): number {
  let sum = 0;
  let inverse = 1; // 1 ÷ own!
  for (let own = 0; own <= Math.min(most, total); own++) {
    sum += (ways[total - own] ?? 0) * inverse;
    inverse /= own + 1;
  }
  return sum;
}

/** The average and the usual excess of the greatest of `bins` numbers with that variance. */
function estimated(balls: number, bins: number): number {
  const average = balls / bins;
  return Math.min(balls, average + Math.sqrt(2 * average * Math.log(bins)));
}
