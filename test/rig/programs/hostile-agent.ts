/**
 * node hostile-agent.ts WHAT BYTES: the agent of a host that somebody has taken over, as a remote shell's command: it says hello, starts the ranks
 * that it is told to start, and then says without end what WHAT names, until it is cut off or has said that much.
 */
import { writeSync } from 'node:fs';
import { encodeFrame, encodeJson, FrameDecoder, makeFrame } from '../../../control/messages/codec.ts';
import { ByteWriter } from '../../../control/messages/bytes.ts';
import { FrameKind, type Frame } from '../../../control/messages/frame.ts';
import { parseOrder } from '../../../control/link/validate.ts';
import type { AgentHello, AgentOrder } from '../../../control/messages/link.ts';
import { type Flood, floods, isFlood } from '../attack/floods.ts';

const [what = '', bytes = '0'] = process.argv.slice(2);
if (!isFlood(what)) throw new Error(`no flood: ${what}`);
const flood: Flood = floods[what];
let ranks: readonly number[] = [];

/** Blocks until all of it is written; ends the process where nobody reads any more. */
function say(message: Uint8Array): void {
  for (let said = 0; said < message.length; ) {
    try {
      said += writeSync(1, message, said);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EAGAIN')) process.exit(1);
    }
  }
}

function begin(order: AgentOrder): void {
  ranks = (order.placement?.ranks ?? []).map(({ rank }) => rank);
  const hello: AgentHello = {
    schemaVersion: 1,
    version: order.version,
    jobId: order.jobId,
    hostName: order.hostName,
    bootId: 'b',
    clockId: null,
    pid: process.pid,
    cores: 4,
    gpus: 0,
    topology: null,
    nodeVersion: process.version,
    addresses: ['127.0.0.1'],
    nics: [],
    verbs: null,
    launcherAddress: null,
    preflight: {},
    hardware: { processor: null, gpu: null, driver: null },
    time: Date.now(),
    freePort: 1,
  };
  say(encodeFrame(makeFrame(FrameKind.hello, { payload: encodeJson(hello) })));
}

function start(): void {
  for (const rank of ranks) {
    const payload = new ByteWriter().u32(1).u64(1_000_000).finish();
    say(encodeFrame(makeFrame(FrameKind.spawned, { subject: rank, payload })));
  }
}

function inundate(): void {
  process.stderr.write('it begins\n');
  for (let said = 0, round = 0; said < Number(bytes); round += 1) {
    const piece = flood.piece(round);
    say(piece);
    said += piece.length;
  }
}

function hear({ kind, payload }: Frame): void {
  if (kind === FrameKind.order && flood.moment === 'running') begin(parseOrder(payload));
  else if (kind === FrameKind.order) inundate();
  if (kind !== FrameKind.start) return;
  start();
  inundate();
}

const decoder = new FrameDecoder(hear);
process.stdin.on('data', (chunk: Buffer) => decoder.push(chunk));
