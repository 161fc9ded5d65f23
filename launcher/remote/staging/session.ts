/** One connection's staging session, from the start of the remote command to the agent's first frame. */
import type { Link } from '../../../control/link/link.ts';
import { FrameKind } from '../../../control/messages/frame.ts';
import type { Frame } from '../../../control/messages/frame.ts';
import type { AgentFailure } from '../../model/failure.ts';
import type { ArchiveUpload } from './archive-upload.ts';
import type { InstallationIdentity } from './identity.ts';
import { StagingMessage } from './protocol.ts';
import { StagingSequence } from './sequence.ts';

interface StagingSessionOptions {
  readonly identity: InstallationIdentity;
  readonly host: string;
  readonly link: Link;
  /** For the agent that starts in the end. */
  readonly order: Frame;
  /** The host gets a copy of so many bytes. */
  readonly onBegin: (bytes: number) => void;
  /** Ends the connection: there is nothing to give. */
  readonly giveUp: () => void;
}

export class StagingSession {
  readonly #options: StagingSessionOptions;
  readonly #sequence = new StagingSequence();
  #upload: Promise<ArchiveUpload> | null = null;
  #cached = false;
  /** The host's StagingRefusal. */
  #refusal: number | null = null;
  #ownFailure: AgentFailure | null = null;

  constructor(options: StagingSessionOptions) {
    this.#options = options;
  }

  /** False: the frame is an agent's. @throws ProtocolError for one out of sequence */
  takes(frame: Frame): boolean {
    if (frame.kind !== FrameKind.staging) return this.#isCachedFailing(frame);
    this.#sequence.receive(frame.flags);
    switch (frame.flags) {
      case StagingMessage.cached:
        this.#cached = true;
        break;
      case StagingMessage.failed:
        this.#refusal = frame.subject;
        break;
      default:
        // In the order in which they came: each waits for the same promise.
        this.#upload ??= this.#loadUpload();
        void this.#upload.then((upload) => upload.frame(frame));
    }
    return true;
  }

  /** The copy in the host's cache was started and no agent spoke: it is damaged, a new one may be whole. */
  get cachedIsBad(): boolean {
    return this.#cached;
  }

  /** Why there is no agent, after the connection's end; null where staging is not to blame. */
  async failure(stderr: string): Promise<AgentFailure | null> {
    if (this.#ownFailure !== null || this.#refusal === null) return this.#ownFailure;
    const { stagingFailure } = await import('./failure.ts');
    return stagingFailure(this.#options.host, this.#refusal, stderr);
  }

  /** An agent from the cache that cannot serve; another copy may. */
  #isCachedFailing(frame: Frame): boolean {
    return this.#cached && frame.kind === FrameKind.failure;
  }

  async #loadUpload(): Promise<ArchiveUpload> {
    const { ArchiveUpload: Upload } = await import('./archive-upload.ts');
    const { identity, link, order, host, onBegin, giveUp } = this.#options;
    return new Upload({
      identity,
      link,
      order,
      onBegin,
      onOffer: (pieces) => this.#sequence.offer(pieces),
      onFailure: (message, remedy) => {
        this.#ownFailure = { type: 'agent', host, phase: 'hello', message, remedy };
        giveUp();
      },
    });
  }
}
