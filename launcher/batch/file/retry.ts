/** When and how often a job runs again. */
import type { RetryPolicy } from '../model/spec.ts';
import { checkedSeconds } from './duration.ts';
import { itemOf, mapOf } from './item.ts';
import { mistakeIn, type JobSource } from './job-source.ts';

const defaultInterruptions = 10;
const defaultDelaySeconds = 30;

/** Throws a FailureError (usage) for what contradicts itself. */
export function readRetry(job: JobSource): RetryPolicy {
  const { retry = {}, requeue } = job.raw;
  const events = retry.on_events ?? null;
  const onError = events === null ? retry.max_retries !== undefined : events.includes('error');
  const onInterruption = (events === null || events.includes('interruption')) && requeue !== false;
  if (!onError && (retry.max_retries ?? 0) > 0) {
    throw mistakeOf(job, 'max_retries', 'errors have retries, and on_events has no error', 'add error to on_events');
  }
  if (events?.includes('error') === true && retry.max_retries === undefined) {
    throw mistakeOf(job, 'on_events', 'errors are retried, and nothing says how often', 'add max_retries: 2');
  }
  const interruptions = retry.max_interruptions ?? defaultInterruptions;
  if (!onInterruption && (retry.max_interruptions ?? 0) > 0) {
    const why = requeue === false ? 'requeue is false' : 'on_events has no interruption';
    throw mistakeOf(job, 'max_interruptions', `interruptions have retries, and ${why}`, 'leave one of them out');
  }
  if (requeue === true && (!onInterruption || interruptions === 0)) {
    throw mistakeIn(job, 'requeue', 'requeue is true, and retry leaves interruptions out', 'leave one of them out');
  }
  return {
    errors: onError ? (retry.max_retries ?? 0) : 0,
    interruptions: onInterruption ? interruptions : 0,
    unlessExit: [...new Set(retry.unless_exit)],
    delaySeconds: retry.delay === undefined ? defaultDelaySeconds : checkedDelay(job, retry.delay),
    onOutOfMemory: retry.on_oom === 'retry',
  };
}

function checkedDelay(job: JobSource, text: string): number {
  return text === '0s' ? 0 : checkedSeconds(job, text, 'delay');
}

function mistakeOf(job: JobSource, key: string, message: string, remedy: string): Error {
  const retry = mapOf(job.map, 'retry');
  const item = retry === null ? null : itemOf(retry, key);
  return item === null ? mistakeIn(job, 'retry', message, remedy) : job.source.mistake(item, message, remedy);
}
