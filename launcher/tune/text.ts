/** The lines of `ncclrun tune`: of each size the fastest variant, and what jobs would take without the table. */
import type { TuneHead, TuneRow } from './lines.ts';
import { counted } from '../text/counted.ts';

export function tuneHead({ ranks, hosts, device }: TuneHead): string {
  return [
    `# variants on ${ranks} ranks, ${counted(hosts, 'host')}, device ${device}: the fastest, and what is planned without a table`,
    `#${cells(['collective', 'size', 'fastest variant', 'time', 'planned variant', 'time', 'slower'])}`,
    `#${cells(['', '(B)', '', '(us)', '', '(us)', ''])}`,
    '',
  ].join('\n');
}

/** `rows`: of one collective and size. */
export function tuneLine(rows: readonly TuneRow[]): string {
  const best = fastest(rows);
  if (best === null) return '';
  const planned = rows.find((row) => row.planned) ?? null;
  const slower = planned === null ? '' : `${((planned.timeUs / best.timeUs - 1) * 100).toFixed(0)} %`;
  const [variant, time] =
    planned === null || planned === best ? ['same', ''] : [variantText(planned), timeText(planned)];
  return ` ${cells([best.collective, `${best.bytes}`, variantText(best), timeText(best), variant, time, slower])}\n`;
}

function fastest(rows: readonly TuneRow[]): TuneRow | null {
  return rows.reduce<TuneRow | null>((best, row) => (best === null || row.timeUs < best.timeUs ? row : best), null);
}

/** By how much the planned variants were slower: one line per collective. */
export function tuneFoot(bySize: readonly (readonly TuneRow[])[]): string {
  const collectives = [...new Set(bySize.flatMap(([first]) => first?.collective ?? []))];
  return collectives
    .map((collective) => {
      const sizes = bySize.filter(([first]) => first?.collective === collective);
      const losses = sizes.flatMap((rows) => {
        const best = fastest(rows);
        const planned = rows.find((row) => row.planned);
        return best === null || planned === undefined
          ? []
          : [{ bytes: best.bytes, loss: planned.timeUs / best.timeUs - 1 }];
      });
      const worst = losses.toSorted((one, other) => other.loss - one.loss)[0];
      if (worst === undefined) return '';
      const right = losses.filter(({ loss }) => loss < NOISE).length;
      const max = worst.loss < NOISE ? '' : `; most at ${worst.bytes} bytes: ${(worst.loss * 100).toFixed(0)} % slower`;
      return `# ${collective}: what is planned was as fast at ${right} of ${losses.length} sizes${max}\n`;
    })
    .join('');
}

/** Times differ so much from run to run. */
const NOISE = 0.05;

function variantText({ algorithm, protocol, channels, threads }: TuneRow): string {
  return `${algorithm} ${protocol} ${channels}x${threads}`;
}

function timeText({ timeUs }: TuneRow): string {
  return timeUs < 100 ? timeUs.toFixed(2) : timeUs.toFixed(timeUs < 10_000 ? 1 : 0);
}

function cells([
  collective = '',
  size = '',
  best = '',
  time = '',
  planned = '',
  other = '',
  slower = '',
]: readonly string[]): string {
  const line = `${collective.padEnd(14)}  ${size.padStart(11)}  ${best.padEnd(28)}  ${time.padStart(9)}  ${planned.padEnd(28)}  ${other.padStart(9)}  ${slower.padStart(7)}`;
  return line.trimEnd();
}
