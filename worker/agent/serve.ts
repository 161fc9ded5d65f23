/**
 * An agent that is a process of its own, on its link to the launcher. The order is the first frame there; errors go to stderr. It ends
 * with its ranks, and its ranks end when it does: the link's end is the launcher's end.
 */
import type { Link } from '../../control/link/link.ts';
import { parseOrder, parseOrderVersion } from '../../control/link/validate.ts';
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder, AgentReport } from '../../control/messages/link.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { printable } from '../../control/printable.ts';
import type { Agent } from './agent.ts';
import { beginAgent } from './begin.ts';
import { openBootstrap } from './bootstrap-open.ts';
import { leave } from '../engine/load.ts';
import { guardianPath, installationRoot, installedVersion } from './installation.ts';
import type { TcpConnection } from './tcp-silence.ts';
import { Uplink } from './uplink.ts';
import type { Watchdog } from './watchdog.ts';

/** A launcher that has connected sends its order with the same packet; a stranger may never. */
const ORDER_DEADLINE_MS = 30_000;
/** How long the last frames may take to leave before the process ends anyway. */
const FLUSH_DEADLINE_MS = 5000;

/** `died`: all that was sent has left, and the link is no more. */
export interface AgentLink extends Link {
  readonly died: Promise<unknown>;
  /** What it lies in, where that is known. */
  readonly connection: TcpConnection | null;
}

let agent: Agent | null = null;
let uplink: Uplink | null = null;
let isClosed = false;

/** The agent, once the order has come. */
export function theAgent(): Agent | null {
  return agent;
}

/** Serves the launcher at the other end until the end of the process. `watchdog`: what ends us if we do not come up. `start`: for tests. */
export function serve(link: AgentLink, watchdog: Watchdog, start: typeof beginAgent = beginAgent): void {
  const deadline = setTimeout(() => giveUp('no order came'), ORDER_DEADLINE_MS);
  link.open({
    frame(frame) {
      try {
        if (agent === null || (frame.kind === FrameKind.order && agent.hasEnded)) {
          clearTimeout(deadline);
          watchdog.speak();
          begin(frame, link, start);
          watchdog.disarm();
        } else if (uplink?.receive(frame) !== true) {
          agent.receive(frame);
        }
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        logProblem(error.message);
        stop();
      }
    },
    closed(problem) {
      if (problem !== null) logProblem(problem);
      stop();
    },
  });
}

function begin(frame: Frame, link: AgentLink, start: typeof beginAgent): void {
  if (frame.kind !== FrameKind.order)
    throw new ProtocolError('the first message is no order; ncclrun starts this program');
  const refusal = refuse(parseOrderVersion(frame.payload));
  if (refusal !== null) {
    link.send(makeFrame(FrameKind.failure, { payload: encodeJson(refusal) }));
    exitWhenSent(link);
    return;
  }
  const order: AgentOrder = parseOrder(frame.payload);
  uplink ??= uplinkOver(link, order);
  uplink.busy();
  let begun: Agent | null = null;
  begun = start({ link, order, local: false, guardianPath, openBootstrap, onEnded: () => ended(link, begun) });
  agent = begun;
}

function uplinkOver(link: AgentLink, order: AgentOrder): Uplink {
  const made = new Uplink(link, order, (silentMs) => {
    agent?.launcherSilent(silentMs);
    if (agent?.hasEnded === true && !isClosed) stop(); // nobody would end one that waits for another order
  });
  if (link.connection !== null) made.liesIn(link.connection);
  return made;
}

function refuse(wanted: string): AgentReport | null {
  const ours = installedVersion();
  if (wanted === ours) return null;
  const message = `ncclrun ${ours} is installed in ${installationRoot} on this host, but the launcher is version ${wanted}`;
  return { type: 'refusal', message, remedy: 'install the same version on every host' };
}

function stop(): void {
  isClosed = true;
  uplink?.end();
  if (agent?.hasEnded === true && agent.staysAfter) leave(0);
  if (agent === null) giveUp('the launcher closed the connection before its order came');
  else agent.linkClosed();
}

export function logProblem(message: string): void {
  process.stderr.write(`ncclrun agent: ${printable(message)}\n`);
}

export function giveUp(message: string): never {
  logProblem(message);
  return process.exit(125);
}

/** Null: it has refused. One whose launcher may order again stays, and so does one that was followed by another. */
function ended(link: AgentLink, one: Agent | null): void {
  const isLast = one === null || one.hasLostLauncher || (one === agent && !one.staysAfter);
  // Between attempts of a job nothing is silent; between jobs a launcher that is lost must not leave an agent behind.
  if (one === null || (one === agent && !one.awaitsJobs)) uplink?.idle();
  // Other hosts may end later, and their frames pass through this process.
  if (isLast || isClosed) void (uplink?.none ?? Promise.resolve()).then(() => exitWhenSent(link));
}

/** The link's end is the process's. */
function exitWhenSent(link: AgentLink): void {
  setTimeout(() => leave(0), FLUSH_DEADLINE_MS).unref();
  link.close();
  void link.died.then(() => leave(0));
}
