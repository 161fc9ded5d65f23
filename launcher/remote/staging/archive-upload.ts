/** The launcher's side of one host's staging (protocol.ts): gives the host what it asks for. Loaded only where one asks. */
import type { Link } from '../../../control/link/link.ts';
import { makeFrame } from '../../../control/messages/codec.ts';
import { FrameKind } from '../../../control/messages/frame.ts';
import type { Frame } from '../../../control/messages/frame.ts';
import { FailureError } from '../../model/failure-error.ts';
import type { Archive, Compression } from './archive.ts';
import { archive, unpacker } from './archive.ts';
import type { InstallationIdentity } from './identity.ts';
import { ArchiveCompression, PIECE_BYTES, StagingMessage } from './protocol.ts';

export interface UploadTarget {
  readonly identity: InstallationIdentity;
  readonly link: Link;
  /** For the agent that starts in the end. */
  readonly order: Frame;
  /** The host gets so many bytes. */
  readonly onBegin: (bytes: number) => void;
  /** It may ask for so many pieces. */
  readonly onOffer: (pieces: number) => void;
  /** There is nothing to give it. */
  readonly onFailure: (message: string, remedy: string | null) => void;
}

/** While an archive is made, which takes a few seconds once per version, the host must not take us for dead. */
const SIGN_MS = 1000;
const SIGN_OF_LIFE = Buffer.from('\n');

export class ArchiveUpload {
  readonly #session: UploadTarget;
  /** Where it is asked for, it goes ahead of the archive. */
  #unpacker: Buffer | null = null;
  #archive: Archive | null = null;
  #given = 0;

  constructor(session: UploadTarget) {
    this.#session = session;
  }

  frame({ flags, subject }: Frame): void {
    switch (flags) {
      case StagingMessage.unpacker:
        void this.#offerUnpacker();
        return;
      case StagingMessage.wanted:
        void this.#begin(subject === ArchiveCompression.zstd ? 'zstd' : 'gzip');
        return;
      case StagingMessage.next:
        return this.#next();
      case StagingMessage.staged:
        return this.#session.link.send(this.#session.order);
      default:
        // Messages about the host alone do not concern the upload.
        return undefined;
    }
  }

  async #offerUnpacker(): Promise<void> {
    const found = await unpacker();
    if (found.length > 0) this.#unpacker = found;
    this.#session.onOffer(found.length > 0 ? 1 : 0);
    this.#send(this.#session.link, Buffer.from(`${found.length}\n`));
  }

  async #begin(compression: Compression): Promise<void> {
    const { identity, link, onBegin, onOffer, onFailure } = this.#session;
    const signs = setInterval(() => this.#send(link, SIGN_OF_LIFE), SIGN_MS);
    try {
      const found = await archive(compression, identity);
      clearInterval(signs); // the terms are next
      this.#archive = found;
      onBegin(found.bytes.length);
      const pieces = Math.ceil(found.bytes.length / PIECE_BYTES);
      onOffer(pieces);
      const last = found.bytes.length - (pieces - 1) * PIECE_BYTES;
      this.#send(link, Buffer.from(`${[pieces, PIECE_BYTES, last, found.sha256].join(' ')}\n`));
    } catch (error) {
      if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw error;
      onFailure(error.failure.message, error.failure.remedy);
    } finally {
      clearInterval(signs);
    }
  }

  #next(): void {
    if (this.#unpacker !== null) {
      this.#send(this.#session.link, this.#unpacker);
      this.#unpacker = null;
      return;
    }
    if (this.#archive === null) return;
    const piece = this.#archive.bytes.subarray(this.#given, this.#given + PIECE_BYTES);
    this.#given += piece.length;
    this.#send(this.#session.link, piece);
  }

  #send(link: Link, payload: Uint8Array): void {
    link.send(makeFrame(FrameKind.staging, { payload }));
  }
}
