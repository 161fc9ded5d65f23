/** What a job says about GPUs, in the words of Slurm or dstack. */
import { itemOf } from './item.ts';
import { mistakeIn, placeOf, type JobSource } from './job-source.ts';

interface Count {
  /** Null: only the model is said. */
  readonly count: number | null;
  readonly model: string | null;
}

export interface Gpus {
  readonly inAll: number | null;
  readonly perNode: number | null;
  /** False if the job wants none. */
  readonly wanted: boolean;
  readonly model: string | null;
  /** How the file says it: `gpus_per_node: 8`. */
  readonly words: string;
}

/** Throws a FailureError (usage) where the words contradict each other, or a rank would have several GPUs. */
export function readGpus(job: JobSource): Gpus {
  const { raw } = job;
  const said = [
    { key: 'gpus', ...countOf(raw.gpus) },
    { key: 'gpus_per_node', ...countOf(raw.gpus_per_node) },
    { key: 'gpus_per_task', ...countOf(raw.gpus_per_task) },
    { key: 'resources', ...countOf(raw.resources?.gpu) },
  ].filter(({ count, model }) => count !== null || model !== null);
  const [first] = said;
  if (first === undefined) return { inAll: null, perNode: null, wanted: true, model: null, words: '' };
  const words = said.map(
    ({ key, count, model }) =>
      `${key === 'resources' ? 'resources.gpu' : key}: ${[model, count].filter((part) => part !== null).join(':')}`,
  );

  if (raw.gpus_per_task !== undefined && raw.gpus_per_task > 1) {
    const remedy = 'each rank has one GPU: write ntasks for the number of GPUs, and leave gpus_per_task out';
    throw mistakeIn(job, 'gpus_per_task', `a rank wants ${raw.gpus_per_task} GPUs`, remedy);
  }
  const none = said.filter(({ count }) => count === 0);
  if (none.length > 0 && none.length < said.length) throw contradiction(job, said.at(-1)?.key ?? 'gpus', words);
  const perNode = countOf(raw.gpus_per_node).count;
  const inResources = countOf(raw.resources?.gpu).count;
  if (perNode !== null && inResources !== null && perNode !== inResources) throw contradiction(job, 'resources', words);
  const models = new Set(said.map(({ model }) => model?.toLowerCase() ?? null).filter((model) => model !== null));
  if (models.size > 1) throw contradiction(job, said.at(-1)?.key ?? 'gpus', words);
  return {
    inAll: countOf(raw.gpus).count,
    perNode: perNode ?? inResources,
    wanted: none.length === 0,
    model: said.find(({ model }) => model !== null)?.model ?? null,
    words: words.join(', '),
  };
}

function contradiction(job: JobSource, key: string, words: readonly string[]): Error {
  const remedy = 'leave one of them out';
  const resources = itemOf(job.map, 'resources');
  const gpu = key === 'resources' && resources?.type === 'map' ? itemOf(resources, 'gpu') : null;
  return job.source.mistake(gpu ?? placeOf(job, key), `${words.join(' and ')} contradict each other`, remedy);
}

/** `8`, `H100:8`, `H100` (one), `{ name: H100, count: 8 }` */
function countOf(said: number | string | { name?: string | undefined; count?: number | undefined } | undefined): Count {
  if (said === undefined) return { count: null, model: null };
  if (typeof said === 'number') return { count: said, model: null };
  if (typeof said === 'object') return { count: said.count ?? 1, model: said.name ?? null };
  if (/^[0-9]+$/u.test(said)) return { count: Number(said), model: null };
  const [model = '', count = '1'] = said.split(':');
  return { count: Number(count), model };
}
