/** Clocks of hosts whose agents answer in the same moment. */
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { encodeClock } from '../../control/messages/payload.ts';
import { HostClocks } from '../../launcher/clocks/host-clocks.ts';

/** `aheadNs`: of the launcher's clock; null: that host says nothing. */
export function answeredClocks(aheadNs: (host: string) => bigint | null): HostClocks {
  const clocks: HostClocks = new HostClocks({
    ownId: null,
    idOf: () => null,
    send(host, { request }) {
      const ahead = aheadNs(host);
      if (ahead === null) return;
      const payload = encodeClock(process.hrtime.bigint() + ahead);
      queueMicrotask(() => clocks.receive(host, makeFrame(FrameKind.clock, { request, payload })));
    },
  });
  return clocks;
}
