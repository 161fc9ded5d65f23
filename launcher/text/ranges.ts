/** `[0, 1, 2, 5]` → `0-2,5`; the numbers ascend. */
export function ranges(numbers: readonly number[]): string {
  const parts: string[] = [];
  let start: number | undefined;
  let end: number | undefined;
  for (const number of [...numbers, Number.NaN]) {
    if (end !== undefined && number === end + 1) {
      end = number;
      continue;
    }
    if (start !== undefined && end !== undefined) parts.push(start === end ? `${start}` : `${start}-${end}`);
    start = number;
    end = number;
  }
  return parts.join(',');
}

/** The first numbers of `0-2,5`, at most so many. */
export function firstOfRanges(text: string, most: number): number[] {
  const numbers: number[] = [];
  for (const part of text.split(',')) {
    const [, from, to = from] = /^(\d+)(?:-(\d+))?$/u.exec(part) ?? [];
    if (from === undefined) continue;
    const last = Math.min(Number(to), Number(from) + most - numbers.length - 1);
    for (let number = Number(from); number <= last; number++) numbers.push(number);
  }
  return numbers;
}
