/** The agent on a remote host, started by a remote shell: stdin and stdout are its link. */
import { writeSync } from 'node:fs';
import { encodeFrame, encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { AgentReport } from '../../control/messages/link.ts';
import { loadNative } from '../engine/load.ts';
import { NativeLink } from '../engine/native-link.ts';
import type { Native } from '../engine/native.ts';
import { type AgentLink, serve } from './serve.ts';
import { sshConnection } from './tcp-silence.ts';
import { Watchdog } from './watchdog.ts';
import { messageOf } from '../../control/message-of.ts';

/** See NativeLink. Nobody notices so short a delay; the ends of a job and of its start are flushed. */
const GATHER_MS = 2;

const watchdog = Watchdog.ofThisProcess();
const native = loaded();
native.blockSigusr1(true); // for a Node without --disable-sigusr1
const link = new NativeLink(native, (onEvent) => native.streamsServe(0, 1, onEvent), GATHER_MS);
serve(Object.assign(link, { connection: sshConnection(process.env) }) satisfies AgentLink, watchdog);

/** Loads the addon. Without it there is no link, so this function writes the one frame with the failure itself. */
function loaded(): Native {
  try {
    return loadNative();
  } catch (error) {
    const report: AgentReport = {
      type: 'refusal',
      message: messageOf(error),
      remedy: null,
    };
    watchdog.speak();
    writeSync(1, encodeFrame(makeFrame(FrameKind.failure, { payload: encodeJson(report) })));
    return process.exit(125);
  }
}
