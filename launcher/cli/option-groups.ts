/** The order and the titles of the options' groups, in the help and in the manual page. */
import type { Option, OptionGroup } from '../model/option.ts';

const titles: readonly (readonly [OptionGroup, string])[] = [
  ['command', 'What to do'],
  ['measure', 'What to measure'],
  ['ranks', 'Ranks'],
  ['placement', 'Placement'],
  ['hosts', 'Hosts'],
  ['output', 'Output'],
  ['limits', 'Limits'],
  ['other', 'Other'],
];

/** Groups that have options. */
export function groupsOf(
  options: readonly Option[],
): { readonly title: string; readonly options: readonly Option[] }[] {
  return titles
    .map(([group, title]) => ({ title, options: options.filter((option) => option.group === group) }))
    .filter((group) => group.options.length > 0);
}

/** ` N`, `[=rank|host|none]`, or nothing. */
export function argumentText({ argument, kind }: Option): string {
  if (argument === '') return '';
  return 'implied' in kind ? `[=${argument}]` : ` ${argument}`;
}

/** ` (default: 5)` if the help lacks it. */
export function defaultText(option: Option): string {
  return option.default === null || option.help.includes('(default') ? '' : ` (default: ${option.default})`;
}
