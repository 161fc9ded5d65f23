/** What a campaign has come to, for people. */
import { moments } from './kind.ts';
import type { RoundResult } from './round.ts';

/** kind, rounds, passed, slowest end. */
export function table(results: readonly RoundResult[]): string {
  const groups = Map.groupBy(results, ({ draw: { kind } }) => kind);
  const rows = Array.from(groups, ([kind, rounds]) => {
    const passed = rounds.filter(({ wrongs }) => wrongs.length === 0).length;
    const slowest = Math.max(...rounds.map(({ endMs }) => endMs));
    const struck = moments.filter((moment) => rounds.some(({ draw }) => draw.moment === moment));
    return [
      kind.name,
      kind.class,
      String(rounds.length),
      String(passed),
      (slowest / 1000).toFixed(1),
      struck.join(' '),
    ];
  }).toSorted(([one = ''], [other = '']) => one.localeCompare(other));
  const all = [['kind', 'class', 'rounds', 'passed', 'slowest end (s)', 'struck while'], ...rows];
  const widths = all[0]?.map((_, column) => Math.max(...all.map((row) => row[column]?.length ?? 0))) ?? [];
  return all
    .map((row) =>
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
    .join('\n');
}

const LAST_LINES = 12;

/** What is wrong, how to play this round alone, and what the command said at last. */
export function failureText({ draw: { seed, kind, moment, host, rank, rsh }, wrongs, outcome }: RoundResult): string {
  const where = `${kind.name} ${moment}, host h${host + 1}, rank ${rank}, ${rsh}`;
  const again = `npm run test:faults -- --count 1 --seed ${seed} --only ${kind.name} --moment ${moment}`;
  const said = outcome?.stderr.trimEnd().split('\n').slice(-LAST_LINES) ?? [];
  return [`FAILED ${where}: ${wrongs.join(' AND ')}; again: ${again}`, ...said.map((line) => `    ${line}`)].join('\n');
}
