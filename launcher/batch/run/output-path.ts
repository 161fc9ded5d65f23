/** The file that gets a task's output, from its pattern; sbatch's words where it has the thing. */
import { resolve } from 'node:path';

interface OutputFacts {
  readonly batch: string;
  readonly job: string;
  /** Index in its array; 0 outside of arrays, as Slurm has it. */
  readonly index: number;
  readonly task: number;
  /** A number, or what a shell puts in its place. */
  readonly attempt: number | string;
}

interface TaskOutput {
  /** Absolute. */
  readonly path: string;
  /** Pattern of ncclrun's --output, one file for each rank or host; null: `path` gets everything. */
  readonly ofRanks: string | null;
}

/** `pattern`: %x job, %j task of the batch, %a index, %A batch, %r attempt, %t and %n rank, %N host, %% a percent sign. */
export function outputOf(pattern: string, directory: string, launcherOutput: string, facts: OutputFacts): TaskOutput {
  const perRank = /%[tnN]/u.test(pattern.replaceAll('%%', ''));
  const text = pattern.replaceAll(
    /%([xjaArtnN%])/gu,
    (whole, letter: string) => valueOf(letter, facts, perRank) ?? whole,
  );
  const path = resolve(directory, text);
  return perRank ? { path: launcherOutput, ofRanks: path } : { path, ofRanks: null };
}

/** In a pattern that ncclrun goes on to fill in, its percent signs stay double. */
function valueOf(letter: string, facts: OutputFacts, perRank: boolean): string | null {
  const own = (text: string) => (perRank ? text.replaceAll('%', '%%') : text);
  switch (letter) {
    case 'x':
      return own(facts.job);
    case 'j':
      return String(facts.task);
    case 'a':
      return String(facts.index);
    case 'A':
      return own(facts.batch);
    case 'r':
      return String(facts.attempt);
    case 't':
    case 'n':
      return '%r';
    case 'N':
      return '%h';
    case '%':
      return perRank ? '%%' : '%';
    default:
      return null;
  }
}
