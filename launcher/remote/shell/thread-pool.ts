/** Threads of Node in which the names of hosts are looked up, each for as long as a slow name server takes. */
import { access } from 'node:fs';
import { MAX_CONNECTING } from './limiter.ts';

const NAME = 'UV_THREADPOOL_SIZE';
/** What the pool has otherwise. */
const USUAL_THREADS = 4;

/**
 * Before anything has used the pool. Look-ups get half of its threads, so that they leave some to files. The user's own setting counts, and the ranks
 * find none of ours.
 */
export function widenThreadPool(hosts: number): void {
  const threads = 2 * Math.min(hosts, MAX_CONNECTING);
  if (threads <= USUAL_THREADS || process.env[NAME] !== undefined) return;
  process.env[NAME] = String(threads);
  access('/', () => undefined); // makes the pool
  delete process.env[NAME];
}
