/** The report of ranks that this host cannot serve. */
import { encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { AgentReport } from '../../control/messages/link.ts';

/** `reason` is the system's error message. */
export function refusalFrame(reason: string): Frame {
  const message = `a rank could not connect to its agent: ${reason}`;
  const remedy = 'allow more open files there: ulimit -n, LimitNOFILE of its sshd, fs.file-max';
  const report: AgentReport = { type: 'refusal', message, remedy };
  return makeFrame(FrameKind.failure, { payload: encodeJson(report) });
}
