/** A command that the host has begun: its streams are the link, its last words and its status are kept. */
import type { ClientChannel } from 'ssh2';
import { LoginText } from '../../../control/link/login-text.ts';
import { StreamLink } from '../../../control/link/stream-link.ts';
import type { RemoteExit } from '../shell/shell.ts';
import type { LateLink } from './late-link.ts';

/** Maximum bytes kept of its stderr. */
const STDERR_BYTES = 4096;

export class RunningCommand {
  readonly #closed = Promise.withResolvers<void>();
  #status: number | null = null;
  #stderr = '';

  constructor(channel: ClientChannel, link: LateLink) {
    channel.on('exit', (code: number | null) => (this.#status = code));
    channel.stderr.on(
      'data',
      (bytes: Buffer) => (this.#stderr = (this.#stderr + bytes.toString('utf8')).slice(-STDERR_BYTES)),
    );
    channel.on('close', () => this.#closed.resolve());
    link.attach(new StreamLink(channel, channel, new LoginText()));
  }

  /** Resolves when the command and its streams have ended. */
  get closed(): Promise<void> {
    return this.#closed.promise;
  }

  /** How it ended, as far as we know. */
  get end(): RemoteExit {
    return { status: this.#status, stderr: this.#stderr };
  }
}
