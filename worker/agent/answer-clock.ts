/** Answers what this host's clock says: at once, because what passes until the answer is there makes the launcher's estimate worse. */
import type { Link } from '../../control/link/link.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import type { Frame } from '../../control/messages/frame.ts';
import { encodeClock } from '../../control/messages/payload.ts';

export function answerClock({ request }: Frame, link: Pick<Link, 'send' | 'flush'>): void {
  link.send(makeFrame(FrameKind.clock, { request, payload: encodeClock(process.hrtime.bigint()) }));
  link.flush();
}
