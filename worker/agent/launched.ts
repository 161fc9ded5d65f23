/**
 * The agent on a remote host, started by a remote shell. The order is the first frame on stdin, frames of ours go to stdout,
 * complaints to stderr. It ends with its ranks, and its ranks end when it does: stdin's end is the launcher's end.
 */
import { writeSync } from 'node:fs';
import { parseOrder, parseOrderVersion } from '../../control/link/validate.ts';
import { encodeFrame, encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentOrder, AgentReport } from '../../control/messages/link.ts';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import type { Agent } from './agent.ts';
import { beginAgent } from './begin.ts';
import { openBootstrap } from './bootstrap-open.ts';
import { leave, loadNative } from '../engine/load.ts';
import { NativeLink } from '../engine/native-link.ts';
import type { Native } from '../engine/native.ts';
import { guardianPath, installationRoot, installedVersion } from './installation.ts';

/** A launcher that has connected sends its order with the same packet; a stranger may never. */
const ORDER_DEADLINE_MS = 30_000;
/** See NativeLink. Nobody notices so short a delay; the ends of a job and of its start are flushed. */
const GATHER_MS = 2;
/** How long the last frames may take to leave before the process ends anyway. */
const FLUSH_DEADLINE_MS = 5000;

const native = loaded();
const link = new NativeLink(native, (onEvent) => native.streamsServe(0, 1, onEvent), GATHER_MS);
let agent: Agent | null = null;
const deadline = setTimeout(() => giveUp('no order came on stdin'), ORDER_DEADLINE_MS);

link.open({
  frame(frame) {
    try {
      if (agent === null) begin(frame);
      else agent.receive(frame);
    } catch (error) {
      if (!(error instanceof ProtocolError)) throw error;
      complain(error.message);
      stop();
    }
  },
  closed(problem) {
    if (problem !== null) complain(problem);
    stop();
  },
});

function begin(frame: Frame): void {
  if (frame.kind !== FrameKind.order)
    throw new ProtocolError('the first message is no order; ncclrun starts this program');
  clearTimeout(deadline);
  const refusal = refuse(parseOrderVersion(frame.payload));
  if (refusal !== null) {
    link.send(makeFrame(FrameKind.failure, { payload: encodeJson(refusal) }));
    exitWhenSent();
    return;
  }
  const order: AgentOrder = parseOrder(frame.payload);
  agent = beginAgent({ link, order, local: false, guardianPath, openBootstrap, onEnded: exitWhenSent });
}

function refuse(wanted: string): AgentReport | null {
  const ours = installedVersion();
  if (wanted === ours) return null;
  const message = `ncclrun ${ours} is installed in ${installationRoot} on this host, but the launcher is version ${wanted}`;
  return { type: 'refusal', message, remedy: 'install the same version on every host' };
}

function stop(): void {
  if (agent === null) giveUp('the launcher closed the connection before its order came');
  else agent.linkClosed();
}

function complain(message: string): void {
  process.stderr.write(`ncclrun agent: ${message}\n`);
}

function giveUp(message: string): never {
  complain(message);
  return process.exit(125);
}

/** The link's end is the process's. */
function exitWhenSent(): void {
  setTimeout(() => leave(0), FLUSH_DEADLINE_MS).unref();
  link.close();
  void link.died.then(() => leave(0));
}

/** Without the addon there is no link either: the one frame that says so goes out by hand. */
function loaded(): Native {
  try {
    return loadNative();
  } catch (error) {
    const report: AgentReport = {
      type: 'refusal',
      message: error instanceof Error ? error.message : String(error),
      remedy: null,
    };
    writeSync(1, encodeFrame(makeFrame(FrameKind.failure, { payload: encodeJson(report) })));
    return process.exit(125);
  }
}
