/**
 * The states of a task.
 *
 *   held ─► queued ─► claimed ─► running ─► succeeded, failed, timed-out
 *             ▲  │        │          │
 *             └──┼────────┴──────────┘   a retry: the attempt's number grows
 *                └─► skipped, cancelled
 */
const waitingStates = ['held', 'queued'] as const;
const activeStates = ['claimed', 'running'] as const;
const endedStates = ['succeeded', 'failed', 'timed-out', 'lost', 'cancelled', 'skipped'] as const;
export const taskStates = [...waitingStates, ...activeStates, ...endedStates] as const;

export type EndedState = (typeof endedStates)[number];
export type TaskState = (typeof taskStates)[number];

export function hasEnded(state: TaskState): state is EndedState {
  return endedStates.some((one) => one === state);
}
