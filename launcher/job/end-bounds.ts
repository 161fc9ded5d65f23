/**
 * What a host may still say, and how long it may take, once its ranks are to be killed: what lay in their pipes comes, then word that they are
 * ended. A host that goes on as if nothing had been asked would keep the job from ending.
 */
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { sizeText } from '../../control/size-text.ts';

/** What was on the way, and what pipes held: far more than all ranks of a host can have left. */
const MAX_BYTES = 256e6;
const MAX_FRAMES = 1_000_000;
/** Without a piece of output, where its output is taken. Counted in ticks, which do not come while this process is stopped. */
const TIMEOUT_SECONDS = 30;

interface EndBoundsOptions {
  /** The host waits for us: not all of its output is taken yet. */
  readonly isHeldUp: () => boolean;
  /** It will not end. */
  readonly overdue: (seconds: number) => void;
}

export class EndBounds {
  readonly #timer: NodeJS.Timeout;
  #ticks = 0;
  #bytes = 0;
  #frames = 0;

  constructor({ isHeldUp, overdue }: EndBoundsOptions) {
    this.#timer = setInterval(() => {
      this.#ticks = isHeldUp() ? 0 : this.#ticks + 1;
      if (this.#ticks === TIMEOUT_SECONDS) overdue(TIMEOUT_SECONDS);
    }, 1000);
    this.#timer.unref();
  }

  /** @throws ProtocolError where that is too much */
  output(bytes: number): void {
    this.#bytes += bytes;
    this.#frames += 1;
    this.#ticks = 0;
    if (this.#bytes > MAX_BYTES || this.#frames > MAX_FRAMES)
      throw new ProtocolError(
        `${sizeText(this.#bytes)} of output in ${this.#frames} messages after its ranks were to be killed`,
      );
  }

  close(): void {
    clearInterval(this.#timer);
  }
}
