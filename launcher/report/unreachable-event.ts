import type { JobEvent } from '../model/event.ts';

/** An event of a type that no case knows; the compiler shows where one is missing. */
export function unreachableEvent(event: never): never {
  const seen: JobEvent = event;
  throw new TypeError(`an event of unknown type: ${JSON.stringify(seen)}`);
}
