/** A launcher of attempts: runs one after the other, as its scheduler calls for them, until the scheduler is gone or an attempt has not ended in order. */
import type { Socket } from 'node:net';
import type { Reporter } from '../../model/types.ts';
import { redirectOutput } from '../../local/host.ts';
import { forgetStandardStreams } from '../../report/standard-streams.ts';
import { callIn, eachLine, tell, type AttemptCall } from './channel.ts';
import { heedSignals, ignoreSignals } from './idle-signals.ts';
import { runAttempt } from './run-attempt.ts';

/** `run`: ncclrun with these words, and a reporter beside its own. Returns the status of the last attempt. Rejects as `run` does. */
export async function serveAttempts(
  scheduler: Socket,
  run: (argv: readonly string[], reporter: Reporter) => Promise<number>,
): Promise<number> {
  const calls = new Calls(scheduler);
  let status = 0;
  for (let call = await calls.next(); call !== null; call = await calls.next()) {
    await heedSignals();
    if (call.output !== null) redirectOutput(call.output);
    const end = await runAttempt(call.directory, (argv) => {
      tell(scheduler, 'begun');
      return run(
        argv,
        startReporter(() => tell(scheduler, 'running')),
      );
    });
    status = end.status;
    if (call.isLast || !end.isInOrder) break;
    ignoreSignals();
    settle();
    tell(scheduler, 'ended');
  }
  return status;
}

/** Calls `started` once all ranks have started. */
function startReporter(started: () => void): Reporter {
  return {
    event(event) {
      if (event.type === 'phase' && event.phase === 'run') started();
    },
    output: () => Promise.resolve(),
    result: () => Promise.resolve(),
  };
}

/** As the process was before the attempt. */
function settle(): void {
  process.chdir('/');
  redirectOutput('/dev/null');
  forgetStandardStreams();
}

class Calls {
  readonly #waiting: AttemptCall[] = [];
  #isOver = false;
  #wake = (): void => {};

  constructor(scheduler: Socket) {
    eachLine(scheduler, (line) => {
      this.#waiting.push(callIn(line));
      this.#wake();
    });
    scheduler.once('close', () => {
      this.#isOver = true;
      this.#wake();
    });
  }

  /** Null: the scheduler is gone. What it called for before is still run. */
  async next(): Promise<AttemptCall | null> {
    while (this.#waiting.length === 0 && !this.#isOver)
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
      });
    return this.#waiting.shift() ?? null;
  }
}
