/** A link server of a job, and the invitation that its agents have. */
import { randomBytes } from 'node:crypto';
import { LinkServer } from '../../control/link/link-server.ts';
import type { Link } from '../../control/link/link.ts';
import type { Invitation } from '../../control/link/secret.ts';

export interface Invited {
  /** Identities whose links have come, in this order. */
  readonly callers: readonly string[];
  readonly invitation: Invitation;
  readonly secret: Buffer;
}

/** `onLink`: opens each link; `closers`: get what ends the server. */
export async function invite(
  identities: readonly string[],
  onLink: (link: Link) => void,
  closers: (() => void)[],
): Promise<Invited> {
  const secret = randomBytes(32);
  const callers: string[] = [];
  const server = await LinkServer.listen({
    portRange: null,
    secret,
    identities: new Set(identities),
    onLink(identity, link) {
      callers.push(identity);
      onLink(link);
      closers.push(() => link.abandon());
    },
  });
  closers.push(() => server.close());
  const invitation: Invitation = {
    schemaVersion: 1,
    jobId: 'job',
    secret: secret.toString('base64'),
    addresses: ['127.0.0.1'],
    port: server.port,
  };
  return { callers, invitation, secret };
}
