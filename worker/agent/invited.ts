/**
 * The agent of a host where a resource manager starts processes: an invitation comes on stdin, the same for all hosts, and the agent calls the
 * launcher. A manager that wants the job to end sends signals to everybody.
 */
import { parseInvitation } from '../../control/link/validate.ts';
import { call } from '../../control/link/call.ts';
import type { Invitation } from '../../control/link/secret.ts';
import { StreamLink } from '../../control/link/stream-link.ts';
import { FrameDecoder } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { loadNative } from '../engine/load.ts';
import { type AgentLink, logProblem, giveUp, serve, theAgent } from './serve.ts';
import { Watchdog } from './watchdog.ts';
import { messageOf } from '../../control/message-of.ts';

const INVITATION_DEADLINE_MS = 30_000;
const CALL_LIMIT_MS = 30_000;

/** Ends the process where there is no invitation, or nobody answers. */
export async function serveInvited(): Promise<void> {
  // The agent has started, so the watchdog ends here: from now on it waits for other hosts, and each wait has a timeout of its own.
  const watchdog = Watchdog.ofThisProcess();
  watchdog.disarm();
  process.on('SIGTERM', () => ends('SIGTERM'));
  process.on('SIGINT', () => ends('SIGINT'));
  process.on('SIGUSR2', () => undefined); // the ranks get it from Slurm, too
  try {
    loadNative().blockSigusr1(true); // as well
    const invitation = await readInvitation();
    const host = process.env['SLURMD_NODENAME'] ?? '';
    const socket = await call(withManagersAddress(invitation), host, {
      limitMs: CALL_LIMIT_MS,
      onRetry: (why) => logProblem(`${why}; calling again`),
    });
    const died = new Promise((resolve) => {
      socket.once('close', resolve);
    });
    const { localAddress = '', localPort = 0, remoteAddress = '', remotePort = 0 } = socket;
    const connection = { localAddress, localPort, remoteAddress, remotePort };
    serve(Object.assign(new StreamLink(socket, socket), { died, connection }) satisfies AgentLink, watchdog);
  } catch (error) {
    giveUp(messageOf(error));
  }
}

function ends(signal: 'SIGTERM' | 'SIGINT'): void {
  const agent = theAgent();
  if (agent?.hasStarted === true) agent.askToEnd(signal);
  else giveUp(`ended by ${signal}`); // there is nobody to be asked
}

/** The first frame on stdin; what follows is nobody's. */
function readInvitation(): Promise<Invitation> {
  return new Promise((resolve, reject) => {
    const deadline = setTimeout(() => reject(new Error('no invitation came on stdin')), INVITATION_DEADLINE_MS);
    const decoder = new FrameDecoder(({ kind, payload }) => {
      if (kind !== FrameKind.invitation)
        throw new Error('the first message is no invitation; ncclrun starts this program');
      clearTimeout(deadline);
      process.stdin.pause();
      process.stdin.removeAllListeners('data');
      resolve(parseInvitation(payload));
    });
    process.stdin.on('data', (chunk: Buffer) => {
      try {
        decoder.push(chunk);
      } catch (error) {
        reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    process.stdin.on('end', () => reject(new Error('stdin ended before an invitation came')));
    process.stdin.on('error', reject);
  });
}

/** Where srun runs, which is where the launcher is, as Slurm reaches it from here. */
function withManagersAddress(invitation: Invitation): Invitation {
  const known = process.env['SLURM_LAUNCH_NODE_IPADDR'] ?? '';
  if (known === '') return invitation;
  return { ...invitation, addresses: [known, ...invitation.addresses.filter((address) => address !== known)] };
}
