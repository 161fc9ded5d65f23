/** The ranks' output to the reporter, and credit back to the hosts as the reporter takes it. */
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind, OUTPUT_END, OUTPUT_PARTIAL, OUTPUT_STDERR } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { encodeCredit, outputTime } from '../../control/messages/payload.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { sizeText } from '../../control/size-text.ts';
import type { OutputChunk } from '../model/event.ts';
import { JoinedOutput } from './joined-output.ts';
import type { Reporter } from '../model/types.ts';

/** Credit is given back in fractions of the window, not chunk by chunk. */
const GRANT_FRACTION = 4;
/** Of one host at the reporter. Credit counts bytes, and each chunk takes a thousand beside its own: what is more waits, joined. */
const MAX_CHUNKS = 4096;

/** Where output comes from and credit goes to. */
interface OutputHost {
  readonly name: string;
  /** Bytes that it may send before any credit. */
  readonly outputCredit: number;
  send(frame: Frame): void;
}

interface HostOutput {
  readonly host: OutputHost;
  /** Bytes that it may send. */
  credit: number;
  /** Bytes that the reporter has taken and that it has no credit for yet. */
  owed: number;
  /** At the reporter. */
  chunks: number;
  readonly waiting: JoinedOutput;
  /** Streams that have said their last: twice the rank, and 1 for stderr. */
  readonly ended: Set<number>;
}

export class OutputFlow {
  readonly #reporter: Reporter;
  readonly #windowBytes: number;
  readonly #onError: (error: unknown) => void;
  readonly #hosts = new Map<OutputHost, HostOutput>();
  #underWay = 0;
  #idle: (() => void) | null = null;

  /** `windowBytes`: what one host may have under way. `onError`: the reporter takes no more; called for every piece. */
  constructor(reporter: Reporter, windowBytes: number, onError: (error: unknown) => void) {
    this.#reporter = reporter;
    this.#windowBytes = windowBytes;
    this.#onError = onError;
  }

  /** @throws ProtocolError for output beyond the credit */
  take(host: OutputHost, { subject: rank, flags, request: stamp, payload: bytes }: Frame): void {
    const from = this.#of(host);
    const source = 2 * rank + (flags & OUTPUT_STDERR);
    if (from.ended.has(source)) throw new ProtocolError(`output of rank ${rank} behind its end`);
    if ((flags & OUTPUT_END) !== 0) from.ended.add(source);
    else if (bytes.length === 0) throw new ProtocolError(`output of rank ${rank} without a byte`);
    if (bytes.length === 0) return;
    from.credit -= bytes.length;
    if (from.credit < 0) throw new ProtocolError(`${sizeText(-from.credit)} of output beyond the credit it was given`);
    const stream = (flags & OUTPUT_STDERR) === 0 ? 'stdout' : 'stderr';
    const partial = (flags & OUTPUT_PARTIAL) !== 0;
    const time = outputTime(stamp, Date.now());
    const chunk: OutputChunk = { rank, host: host.name, stream, time, bytes, partial };
    if (from.chunks < MAX_CHUNKS && from.waiting.isEmpty) this.#report(from, chunk);
    else from.waiting.add(chunk);
  }

  /** The reporter has not taken all that came from it. */
  isHeldUp(host: OutputHost): boolean {
    return (this.#hosts.get(host)?.chunks ?? 0) > 0;
  }

  /** Resolves when the reporter has taken everything. */
  async settled(): Promise<void> {
    if (this.#underWay === 0) return;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#idle = resolve;
    await promise;
  }

  #of(host: OutputHost): HostOutput {
    const known = this.#hosts.get(host);
    if (known !== undefined) return known;
    const fresh = {
      host,
      credit: host.outputCredit,
      owed: 0,
      chunks: 0,
      waiting: new JoinedOutput(),
      ended: new Set<number>(),
    };
    this.#hosts.set(host, fresh);
    return fresh;
  }

  #report(from: HostOutput, chunk: OutputChunk): void {
    this.#underWay += 1;
    from.chunks += 1;
    this.#reporter.output(chunk).then(
      () => this.#taken(from, chunk.bytes.length),
      (error: unknown) => {
        // Nobody reads: the ranks must not wait for it while they are being ended.
        this.#taken(from, chunk.bytes.length);
        this.#onError(error);
      },
    );
  }

  #taken(from: HostOutput, bytes: number): void {
    from.chunks -= 1;
    if (from.chunks < MAX_CHUNKS / 2) for (const chunk of from.waiting.take()) this.#report(from, chunk);
    this.#underWay -= 1;
    if (this.#underWay === 0) this.#idle?.();
    from.owed += bytes;
    if (from.owed < this.#windowBytes / GRANT_FRACTION) return;
    from.host.send(makeFrame(FrameKind.outputCredit, { payload: encodeCredit(from.owed) }));
    from.credit += from.owed;
    from.owed = 0;
  }
}
