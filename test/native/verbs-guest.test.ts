/** The verbs backend over real libibverbs and rdma_rxe; test/long/verbs-guest.test.ts has what takes longer. */
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { isDebian, softRoceUnavailable } from '../rig/soft-roce/guest.ts';
import { VerbsGuest } from '../rig/verbs-guest.ts';

describeIf(
  softRoceUnavailable(),
  'RoCE in a guest',
  () => {
    let guest: VerbsGuest;
    beforeAll(async () => {
      guest = await VerbsGuest.make();
    });
    afterAll(() => guest[Symbol.asyncDispose]());

    it('messages arrive in their order and their groups, and what is too large is refused', async () => {
      const titles = ['small and large messages keep their order', 'of a group of receives', 'larger than its buffer'];
      const { status, lines } = await guest.conformance(titles, 200);
      const passed = lines.filter((line) => line.startsWith('ok'));
      expect(lines.filter((line) => !line.startsWith('ok') && !line.startsWith('skipped two hosts'))).toEqual([]);
      expect(passed).toHaveLength(titles.length * 5 * 2); // backends, and one process or two
      expect(status).toBe(0);
    });

    it('sums go on over the second cable when the first one is cut, and a killed peer is named', async () => {
      const script = `
        start --on-failure shrink -x NCCL_DEBUG=WARN -x NCCL_IB_TIMEOUT=20 $sums 262144 0
        await 'sum 1$'
        ip link set vb down
        await '\\[0\\].*WARN.* moves from'
        await '\\[1\\].*WARN.* moves from'
        before=$(grep -c 'sum ' /tmp/log)
        await "sum $((before + 2))$"
        for pid in $(pgrep -x large-sums); do
          if grep -qz '^RANK=1$' /proc/$pid/environ; then kill -9 $pid; fi
        done
        finish`;
      const { lines } = await guest.run(script, 300);
      const log = lines.join('\n');
      expect(log).toMatch(
        /\[0\] left:.* WARN the connection with .* moves from rxa port 1, GID ::ffff:10\.8\.0\.1 to rxc port 1, GID ::ffff:10\.8\.1\.1: /u,
      );
      expect(log).toMatch(
        /\[1\] right:.* WARN the connection with .* moves from rxb port 1, GID ::ffff:10\.8\.0\.2 to rxd port 1, GID ::ffff:10\.8\.1\.2: /u,
      );
      expect(log).toMatch(/\[0\] .*large-sums\.c:\d+: .*rank 1 (\(|on host )right/u);
      expect(lines.at(-1)).toBe('status 137');
    });
  },
  !isDebian,
);
