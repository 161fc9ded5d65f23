/** What a batch on Slurm tells of itself while somebody watches it. */
import type { EndedState } from '../model/states.ts';

export type SlurmEvent =
  | { readonly type: 'started'; readonly task: number; readonly attempt: number; readonly nodes: string }
  | { readonly type: 'retry'; readonly task: number; readonly message: string }
  | { readonly type: 'ended'; readonly task: number; readonly state: EndedState; readonly message: string };
