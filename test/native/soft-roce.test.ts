/**
 * The stand-in for libibverbs is honest: what verbs_probe (native/test/verbs/probe) asks of it and of Linux's rdma_rxe, through
 * rdma-core's own libibverbs in a guest, gets the same answers.
 */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { isDebian, runInGuest, runInTwoGuests, softRoceUnavailable } from '../rig/soft-roce/guest.ts';
import { buildStandInVerbs, standInVerbs } from '../rig/stand-in-verbs.ts';

/** Where rdma_rxe of Linux 6.1 does not do what the specification and the manual page ibv_poll_cq say, the stand-in does. */
const differences: readonly { readonly question: string; readonly standIn: string; readonly rxe: string }[] = [
  // rdma_rxe names it a local operation error, not a protection error.
  { question: 'wrong local key: error, status, state', standIn: '0 4 6', rxe: '0 2 6' },
  // A remote operation error, not an invalid request.
  { question: 'send that is too long: error, status, states', standIn: '0 9 6 6', rxe: '0 11 6 6' },
  // It does not look at a receive that is posted to a queue pair in the error state.
  { question: 'receive in the error state, status', standIn: '0 5', rxe: '0 -1' },
];

const asOfRxe = (line: string) => {
  const known = differences.find(({ question, standIn }) => line === `${question}: ${standIn}`);
  return known === undefined ? line : `${known.question}: ${known.rxe}`;
};

/** What the stand-in answers, whose cable is cut and joined by lines of `control`. */
function asked(probe: string, directory: string): string {
  const control = (line: string) => `echo ${line} >>${join(directory, 'control')}`;
  return execFileSync(probe, [standInVerbs, 'sia', 'sib', control('port=down'), control('port=up')], {
    encoding: 'utf8',
    env: { ...process.env, STAND_IN_VERBS_DIR: directory },
  });
}

describeIf(
  softRoceUnavailable(),
  'real libibverbs in a guest',
  () => {
    let [out, probe] = ['', ''];
    beforeAll(() => {
      probe = buildStandInVerbs('verbs_probe');
      out = mkdtempSync(join(tmpdir(), 'soft-roce-out-'));
    });
    afterAll(() => rmSync(out, { recursive: true }));

    it('the stand-in answers as rdma_rxe does, but for the differences that are known', async () => {
      const lines = asked(probe, out).trimEnd().split('\n');
      expect(lines.length).toBeGreaterThan(50);
      const command = `exec ${probe} libibverbs.so.1 rxa rxb 'ip link set vb down' 'ip link set vb up'`;
      const { status, lines: real } = await runInGuest(command, out, 300);
      expect(real).toEqual(lines.map(asOfRxe));
      expect(status).toBe(0);
    });

    it('the guest tells how its command ended, and has the files that it left', async () => {
      const { status, lines } = await runInGuest('echo one; cat /run/out/given; exit 3', out);
      expect(lines).toEqual(['one', 'cat: /run/out/given: No such file or directory']);
      expect(status).toBe(3);
    });

    it('two guests reach each other over their devices', async () => {
      const measure = `RAW_VERBS_ROUNDS=20 exec ${buildStandInVerbs('raw_verbs')} libibverbs.so.1 rxn`;
      const [first, second] = await runInTwoGuests([`${measure} 10.9.0.2:4711`, `${measure} 4711`], out, 300);
      expect(second).toEqual({ status: 0, lines: [] });
      expect(first.lines).toHaveLength(7);
      expect(first.status).toBe(0);
    });
  },
  !isDebian,
);
