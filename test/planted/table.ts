/** Right and all verdicts by fault and collective. */
import { COLLECTIVES, FAULTS } from './fault.ts';
import type { Played } from './play.ts';

export function tableText(played: readonly Played[]): string {
  const width = Math.max(...COLLECTIVES.map((name) => name.length)) + 2;
  const header = ['', ...COLLECTIVES].map((name) => name.padStart(width)).join('');
  const rows = FAULTS.flatMap(({ name }) => {
    const own = played.filter((one) => one.case.fault.name === name);
    if (own.length === 0) return [];
    const cells = COLLECTIVES.map((collective) => shareText(own.filter((one) => one.case.collective === collective)));
    return [[name, ...cells].map((cell) => cell.padStart(width)).join('')];
  });
  const right = played.filter(({ wrongs }) => wrongs.length === 0).length;
  return [header, ...rows, `${right} of ${played.length} right`].join('\n');
}

function shareText(played: readonly Played[]): string {
  return played.length === 0 ? '-' : `${played.filter(({ wrongs }) => wrongs.length === 0).length}/${played.length}`;
}

export function wrongText({ case: { fault, collective, rank, replays }, wrongs }: Played): string {
  return `${collective} ${fault.name} rank ${rank}${replays ? ' graph' : ''}: ${wrongs.join('; ')}`;
}
