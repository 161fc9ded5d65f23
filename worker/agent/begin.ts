/** An agent with the native part that every host with ranks needs; where that cannot be had, the launcher learns why. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { AgentReport } from '../../control/messages/link.ts';
import { loadNative } from '../engine/load.ts';
import { Agent } from './agent.ts';
import type { AgentOptions } from './agent-state.ts';
import { stayIfStopped } from './own-end.ts';
import { messageOf } from '../../control/message-of.ts';

/** Null after a refusal: its report is sent, the link closed. */
export function beginAgent(options: Omit<AgentOptions, 'native'>): Agent | null {
  try {
    const native = loadNative();
    // Should the guardian be killed, its orphans come to us and can be found.
    native.setChildSubreaper();
    stayIfStopped(native);
    return new Agent({ ...options, native });
  } catch (error) {
    const message = messageOf(error);
    const report: AgentReport = { type: 'refusal', message, remedy: null };
    options.link.send(makeFrame(FrameKind.failure, { payload: encodeJson(report) }));
    options.onEnded();
    return null;
  }
}
