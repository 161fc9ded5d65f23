/** Events of a batch on Slurm, a line for each. */
import { eventText } from '../text/event-text.ts';
import type { SlurmEvent } from './event.ts';

/** `nameOf`: what a task is called. */
export function slurmEventText(event: SlurmEvent, nameOf: (task: number) => string, now: number): string {
  switch (event.type) {
    case 'started': {
      const on = event.nodes === '' ? '' : ` on ${event.nodes}`;
      return `${nameOf(event.task)} runs${on}${event.attempt === 1 ? '' : ` (attempt ${event.attempt})`}`;
    }
    case 'retry':
      return `${nameOf(event.task)}: ${event.message}; Slurm queues it again`;
    case 'ended':
      return eventText(event, nameOf, now) ?? '';
    default:
      return event satisfies never;
  }
}
