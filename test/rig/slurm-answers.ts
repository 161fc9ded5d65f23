/** Answers of Slurm's commands, for tests without a Slurm. */
import type { Answer, Tool } from '../../launcher/batch/slurm/tools/tool.ts';

/** Columns that ncclrun asks squeue for; an unlike width shows in the tests on a real Slurm. */
const widths = {
  Name: 220,
  ArrayJobID: 16,
  ArrayTaskID: 16,
  State: 20,
  RestartCnt: 12,
  PriorityLong: 24,
  StartTime: 24,
  EndTime: 24,
  Reason: 60,
  NodeList: 400,
};
const usual = {
  Name: '',
  ArrayJobID: '1',
  ArrayTaskID: 'N/A',
  State: 'PENDING',
  RestartCnt: '0',
  PriorityLong: '4294901759',
  StartTime: 'N/A',
  EndTime: 'N/A',
  Reason: 'None',
  NodeList: '',
};
type Column = keyof typeof widths;
const isColumn = (name: string): name is Column => name in widths;

/** A line of squeue. */
export function queueLine(cells: Partial<Record<Column, string>>): string {
  const all = { ...usual, ...cells };
  return Object.keys(widths)
    .filter(isColumn)
    .map((name) => all[name].padEnd(widths[name]))
    .join('');
}

export const done = (stdout = ''): Answer => ({ ok: true, stdout, sentence: '', unclear: false });
export const refused = (sentence: string): Answer => ({ ok: false, stdout: '', sentence, unclear: false });
export const unclear = (sentence: string): Answer => ({ ok: false, stdout: '', sentence, unclear: true });

interface PlayedJob {
  readonly id: number;
  readonly name: string;
  held: boolean;
  state: string;
}

/** A Slurm that has jobs and runs none. Calls are noted, each as its words. */
export class PlayedSlurm {
  readonly jobs: PlayedJob[] = [];
  readonly calls: string[] = [];
  /** Answers instead of the usual ones, in turn; `lost`: the job is submitted, and nobody hears of it. */
  readonly sbatch: (Answer | 'lost' | 'usual')[] = [];

  readonly tool: Tool = async (name, words) => {
    this.calls.push([name, ...words].join(' '));
    switch (name) {
      case 'sbatch':
        return this.#submit(words);
      case 'squeue':
        return done(this.jobs.map(({ id, name: job, held, state }) => lineOf(id, job, held, state)).join('\n'));
      case 'scancel':
        this.#change(words.slice(1), (job) => (job.state = 'CANCELLED'));
        return done();
      case 'scontrol':
        this.#change(words[1]?.split(',') ?? [], (job) => (job.held = words[0] === 'hold'));
        return done();
      default:
        return refused('Slurm accounting storage is disabled');
    }
  };

  #submit(words: readonly string[]): Answer {
    const answer = this.sbatch.shift() ?? 'usual';
    if (typeof answer === 'object') return answer;
    const name = words.find((word) => word.startsWith('--job-name='))?.slice('--job-name='.length) ?? '';
    const id = this.jobs.length + 1;
    this.jobs.push({ id, name, held: true, state: 'PENDING' });
    return answer === 'lost' ? unclear('sbatch ended by SIGKILL') : done(`${id}\n`);
  }

  #change(ids: readonly string[], change: (job: PlayedJob) => void): void {
    for (const job of this.jobs) if (ids.includes(String(job.id))) change(job);
  }
}

function lineOf(id: number, name: string, held: boolean, state: string): string {
  return queueLine({ Name: name, ArrayJobID: String(id), State: state, ...(held ? { PriorityLong: '0' } : {}) });
}
