/**
 * Removes our script from the messages of a shell that repeats it, because it would hide the error. It compares only letters and digits, because
 * shells may quote, fold or indent the script.
 */

/** So many of them in a row are ours. */
const RUN = 20;
/** A line folded off the script's end is shorter, but not than this. */
const SHORT_RUN = 4;

/** `stderr` with … for parts of the script, and without lines that are only the script. */
export function withoutScript(stderr: string, script: string): string {
  if (stderr === '') return stderr;
  const ours = lettersOf(script).text;
  const runs = new Set(Array.from({ length: Math.max(0, ours.length - RUN + 1) }, (_, at) => ours.slice(at, at + RUN)));
  let repeated = false;
  const lines = stderr.split('\n').map((line) => {
    const left = cut(line, runs);
    repeated ||= left !== line;
    return left;
  });
  if (!repeated) return stderr;
  const isOurs = (text: string) => text.length >= SHORT_RUN && ours.includes(text);
  const kept = lines.filter((line) => {
    const { text } = lettersOf(line);
    return line.includes('…') ? text !== '' : !isOurs(text);
  });
  return kept.join('\n');
}

/** From the first run to the last, with the quotes around them. */
function cut(line: string, runs: ReadonlySet<string>): string {
  const { text, at } = lettersOf(line);
  const starts = Array.from({ length: Math.max(0, text.length - RUN + 1) }, (_, start) => start).filter((start) =>
    runs.has(text.slice(start, start + RUN)),
  );
  const [first, last] = [starts[0], starts.at(-1)];
  if (first === undefined || last === undefined) return line;
  const before = line.slice(0, at[first]).replace(/["'\\]+$/, '');
  const after = line.slice((at[last + RUN - 1] ?? line.length) + 1).replace(/^[^A-Za-z0-9\s]+/, '');
  return `${before}…${after}`;
}

/** The letters and digits of a text, and where in it each stands. */
function lettersOf(text: string): { readonly text: string; readonly at: readonly number[] } {
  const found = [...text.matchAll(/[A-Za-z0-9]/g)];
  return { text: found.map(([letter]) => letter).join(''), at: found.map(({ index }) => index) };
}
