/** The ranks' output to the reporter, and credit back to the hosts as the reporter takes it. */
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, OUTPUT_PARTIAL, OUTPUT_STDERR } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { encodeCredit, outputTime } from '../../control/messages/payload.ts';
import type { Host } from './host.ts';
import type { Reporter } from './types.ts';

/** Credit is given back in fractions of the window, not chunk by chunk. */
const GRANT_FRACTION = 4;

export class OutputFlow {
  readonly #reporter: Reporter;
  readonly #grantBytes: number;
  readonly #onError: (error: unknown) => void;
  readonly #owed = new Map<Host, number>();
  #underWay = 0;
  #idle: (() => void) | null = null;

  /** `windowBytes`: what one host may have under way. `onError`: the reporter takes no more; called for every piece. */
  constructor(reporter: Reporter, windowBytes: number, onError: (error: unknown) => void) {
    this.#reporter = reporter;
    this.#grantBytes = windowBytes / GRANT_FRACTION;
    this.#onError = onError;
  }

  take(host: Host, { subject: rank, flags, request: stamp, payload: bytes }: Frame): void {
    if (bytes.length === 0) return;
    const stream = (flags & OUTPUT_STDERR) === 0 ? 'stdout' : 'stderr';
    this.#underWay += 1;
    const partial = (flags & OUTPUT_PARTIAL) !== 0;
    const time = outputTime(stamp, Date.now());
    this.#reporter.output({ rank, host: host.name, stream, time, bytes, partial }).then(
      () => this.#taken(host, bytes.length),
      (error: unknown) => {
        // Nobody reads: the ranks must not wait for it while they are being ended.
        this.#taken(host, bytes.length);
        this.#onError(error);
      },
    );
  }

  /** Resolves when the reporter has taken everything. */
  async settled(): Promise<void> {
    if (this.#underWay === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle = resolve;
    await promise;
  }

  #taken(host: Host, bytes: number): void {
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#idle?.();
    const owed = (this.#owed.get(host) ?? 0) + bytes;
    if (owed < this.#grantBytes) {
      this.#owed.set(host, owed);
      return;
    }
    this.#owed.set(host, 0);
    host.send(makeFrame(FrameKind.outputCredit, { payload: encodeCredit(owed) }));
  }
}
