/** What a batch tells of itself while it runs, a line for each event. */
import { durationText } from '../../jobs/text.ts';
import type { Placement } from '../model/capacity.ts';
import type { BatchEvent } from '../run/batch-event.ts';

/** `nameOf`: what a task is called. Null for what nobody needs to read. */
export function eventText(event: BatchEvent, nameOf: (task: number) => string, now: number): string | null {
  switch (event.type) {
    case 'started':
      return `${nameOf(event.task)} runs on ${hostsText(event.placement)}${attemptText(event.attempt)}`;
    case 'ended': {
      const why = event.message === '' ? '' : `: ${event.message}`;
      return `${nameOf(event.task)} ${endText(event.state)}${why}`;
    }
    case 'retry': {
      const delay = Math.max(0, event.notBefore - now);
      return `${nameOf(event.task)}: ${event.message}; again ${delay < 1000 ? 'as soon as there is room' : `in ${durationText(delay / 1000)}`}`;
    }
    case 'adopted':
      return `${nameOf(event.task)} runs still${attemptText(event.attempt)}`;
    case 'quarantined':
      return `${event.host} gets no tasks for ${durationText((event.until - now) / 1000)}: ${event.reason}`;
    case 'stopping':
      return event.how === 'finish'
        ? 'no more tasks start; ^C again ends those that run'
        : 'all tasks end; ^C again leaves them running';
    default:
      return event satisfies never;
  }
}

function hostsText(placement: Placement): string {
  return placement.map(({ host, ranks }) => `${host}:${ranks}`).join(',');
}

function attemptText(attempt: number): string {
  return attempt === 1 ? '' : ` (attempt ${attempt})`;
}

function endText(state: Extract<BatchEvent, { type: 'ended' }>['state']): string {
  switch (state) {
    case 'succeeded':
      return 'succeeded';
    case 'failed':
      return 'failed';
    case 'timed-out':
      return 'ran into its time limit';
    case 'lost':
      return 'was lost';
    case 'cancelled':
      return 'was cancelled';
    case 'skipped':
      return 'is skipped';
    default:
      return state satisfies never;
  }
}
