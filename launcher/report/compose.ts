/** Several reporters as one. */
import type { Reporter } from '../model/types.ts';

/** Results are told in the order of the reporters, each to its end, so that the last one has the last word on the terminal. */
export function composeReporters(reporters: readonly Reporter[]): Reporter {
  const [only] = reporters;
  if (only !== undefined && reporters.length === 1) return only;
  return {
    async prepare(map) {
      for (const reporter of reporters) await reporter.prepare?.(map);
    },
    event(event) {
      for (const reporter of reporters) reporter.event(event);
    },
    async output(chunk) {
      await Promise.all(reporters.map((reporter) => reporter.output(chunk)));
    },
    async result(result) {
      for (const reporter of reporters) await reporter.result(result);
    },
    recorders(read) {
      for (const reporter of reporters) reporter.recorders?.(read);
    },
    stacks(read) {
      for (const reporter of reporters) reporter.stacks?.(read);
    },
    status(read) {
      for (const reporter of reporters) reporter.status?.(read);
    },
    typed() {
      for (const reporter of reporters) reporter.typed?.();
    },
  };
}
