/** Host names → lists with ranges, in their order: `a01, a02, a03, b` → `a[01-03],b`. What comes out reads back as the same names. */

/** A name cut into text and numbers: a, 01, .x */
type Parts = readonly string[];

interface Group {
  readonly first: Parts;
  /** Which part differs, or null as long as there is one name. */
  varying: number | null;
  readonly numbers: string[];
}

/** Numbers beyond it would lose digits. */
const maximumDigits = 15;

/** `where`: Slurm has ranges only at the end of a name. */
export function foldNames(names: readonly string[], where: 'anywhere' | 'end' = 'anywhere'): string[] {
  const groups: Group[] = [];
  for (const name of names) {
    const parts = name.includes(':') ? [name] : name.split(/([0-9]+)/u);
    const last = groups.at(-1);
    const varying = last === undefined ? null : differing(last, parts, where);
    const number = varying === null ? undefined : parts[varying];
    if (last === undefined || varying === null || number === undefined) {
      groups.push({ first: parts, varying: null, numbers: [] });
      continue;
    }
    if (last.varying === null) last.numbers.push(last.first[varying] ?? '');
    last.varying = varying;
    last.numbers.push(number);
  }
  return groups.map(printGroup);
}

/** The one number in which `parts` differs from the group, or null if it does not belong there. */
function differing(group: Group, parts: Parts, where: 'anywhere' | 'end'): number | null {
  const { first, varying, numbers } = group;
  if (first.length !== parts.length) return null;
  const different = parts.flatMap((part, index) =>
    part === (index === varying ? numbers.at(-1) : first[index]) ? [] : [index],
  );
  const [index, ...others] = different;
  if (index === undefined || others.length > 0 || index % 2 === 0) return null;
  if (varying !== null && index !== varying) return null;
  // The last number has an empty text after it if the name ends there.
  if (where === 'end' && (index !== parts.length - 2 || parts.at(-1) !== '')) return null;
  return [first[index], parts[index]].every((part = '') => part.length <= maximumDigits) ? index : null;
}

function printGroup({ first, varying, numbers }: Group): string {
  if (varying === null) return first.join('');
  return first.map((part, index) => (index === varying ? `[${foldNumbers(numbers)}]` : part)).join('');
}

/** `01, 02, 03, 07` → `01-03,07`: runs of successors of one notation. */
function foldNumbers(numbers: readonly string[]): string {
  const runs: { readonly first: string; last: string }[] = [];
  for (const number of numbers) {
    const run = runs.at(-1);
    if (run !== undefined && follows(run, number)) run.last = number;
    else runs.push({ first: number, last: number });
  }
  return runs.map(({ first, last }) => (first === last ? first : `${first}-${last}`)).join(',');
}

function follows(run: { readonly first: string; readonly last: string }, number: string): boolean {
  if (Number(number) !== Number(run.last) + 1) return false;
  return number === String(Number(number)).padStart(run.first.length, '0');
}
