/** The PMI server of a host: barriers of its ranks here and with other hosts, and what becomes of ranks that fail. */
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { NcclResult } from '../../control/messages/bootstrap.ts';
import { FrameKind, PMI_CLOSE, PMI_READ, type Frame } from '../../control/messages/frame.ts';
import { makeFrame } from '../../control/messages/codec.ts';
import type { AgentReport, Placement } from '../../control/messages/link.ts';
import { encodePuts } from '../../control/messages/pmi.ts';
import { PMI_ID } from '../../control/messages/pmi-id.ts';
import { decodeMerged, encodeCompleted, encodeKeyFailed } from '../../control/messages/rendezvous-codec.ts';
import { PmiServer } from '../../worker/agent/pmi-server.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const SIGPIPE = 13;
const KVS = 'kvs_j_0';
const exit = (exitCode: number | null, signalNumber: number | null = null) => ({ exitCode, signalNumber });
const keyOf = (round: number, id = PMI_ID) => ({ id, epoch: 0, round });

const rankOf = (number: number): Placement['ranks'][number] => ({
  rank: number,
  program: 0,
  visibleGpus: null,
  gpu: null,
  stdinPipe: false,
  interactive: false,
  mergeStderr: false,
  cpus: [],
});

/** The ranks 0 and 1 run here; `others`: ranks on a further host. */
function server(others = 0) {
  const placement: Placement = {
    hostIndex: 0,
    hostCount: others === 0 ? 1 : 2,
    rankCount: 2 + others,
    programs: [],
    ranks: [rankOf(0), rankOf(1)],
  };
  const sent: string[] = [];
  const up: Frame[] = [];
  const reports: AgentReport[] = [];
  const pmi = new PmiServer({
    order: { jobId: 'j', epoch: 0, hostName: 'h' },
    placement,
    send({ subject, flags, payload }) {
      const text = Buffer.from(payload).toString('latin1').trim();
      const named = { [PMI_READ]: 'read', [PMI_CLOSE]: 'close' }[flags];
      sent.push(`${subject} ${[text, named].filter(Boolean).join(' ')}`);
    },
    sendUp: (frame) => up.push(frame),
    report: (report) => reports.push(report),
  });
  return {
    pmi,
    up,
    reports,
    /** What goes to the ranks since the last call, without the permissions to read on. */
    sent: () => sent.splice(0).filter((line) => !line.endsWith(' read')),
    all: () => sent.splice(0),
    notices: () => reports.flatMap((report) => (report.type === 'notice' ? [report.message] : [])),
    says: (from: number, ...lines: readonly string[]) =>
      pmi.receive(
        makeFrame(FrameKind.pmi, { subject: from, payload: Buffer.from(lines.map((line) => `${line}\n`).join('')) }),
      ),
  };
}

describe('a barrier of the ranks of one host', () => {
  it('a barrier ends when every rank has come, and all know what was put before', () => {
    const { says, sent, up } = server();
    says(0, `cmd=put kvsname=${KVS} key=a value=1`, 'cmd=barrier_in');
    expect(sent()).toEqual(['0 cmd=put_result rc=0 msg=success']);
    says(1, 'cmd=barrier_in');
    expect(sent()).toEqual(['0 cmd=barrier_out rc=0', '1 cmd=barrier_out rc=0']);
    says(1, `cmd=get kvsname=${KVS} key=a`, 'cmd=get_universe_size');
    expect(sent()).toEqual(['1 cmd=get_result rc=0 msg=success value=1\ncmd=universe_size rc=0 size=2']);
    expect(up).toEqual([]);
  });

  it('the guardian may read on after each message, and nothing is answered to a rank of another host', () => {
    const { says, all } = server();
    says(0, 'cmd=get_appnum');
    expect(all()).toEqual(['0 cmd=appnum rc=0 appnum=0', '0 read']);
    says(7, 'cmd=get_appnum');
    expect(all()).toEqual([]);
  });

  it('the server reports a rank that breaks the protocol, and closes its connection', () => {
    const { says, sent, notices } = server();
    says(0, 'cmd=barrier_in');
    says(0, 'cmd=get_appnum');
    expect(sent()).toEqual(['0 close']);
    expect(notices()).toEqual([
      'rank 0 sent its PMI server (MPI) "get_appnum" while it waits in a barrier; the connection is closed',
    ]);
    says(0, 'cmd=get_appnum');
    says(1, 'cmd=barrier_in');
    expect(sent()).toEqual(['1 cmd=barrier_out rc=0']);
  });
});

describe('a barrier of ranks on several hosts', () => {
  it('the contributions go to the launcher, whose answer has the keys of all', () => {
    const { pmi, says, sent, up } = server(1);
    says(0, `cmd=put kvsname=${KVS} key=a value=1`, 'cmd=barrier_in');
    says(1, 'cmd=barrier_in');
    sent();
    expect(up.map(({ kind, payload }) => [kind, decodeMerged(payload)])).toMatchObject([
      [
        FrameKind.merged,
        {
          key: keyOf(0),
          size: 3,
          entries: [
            { rank: 0, jobRank: 0 },
            { rank: 1, jobRank: 1 },
          ],
        },
      ],
    ]);
    const rows = [[], [], [['b', '2']] as const].map((puts) => encodePuts(new Map(puts)));
    const answer = (id?: string) => makeFrame(FrameKind.completed, { payload: encodeCompleted(keyOf(0, id), rows) });
    expect(pmi.answered(answer('x'.repeat(128)))).toBe(false);
    expect(sent()).toEqual([]);
    expect(pmi.answered(answer())).toBe(true);
    expect(sent()).toEqual(['0 cmd=barrier_out rc=0', '1 cmd=barrier_out rc=0']);
    says(1, `cmd=get kvsname=${KVS} key=b`);
    expect(sent()).toEqual(['1 cmd=get_result rc=0 msg=success value=2']);
    expect(pmi.answered(makeFrame(FrameKind.heartbeat, {}))).toBe(false);
  });

  it.each<[NcclResult, string[]]>([
    [NcclResult.invalidUsage, ['rank 0 cannot pass its PMI barrier (MPI): a sentence']],
    [NcclResult.remoteError, []],
  ])('ranks whose barrier fails with result %i find their connections closed after a second', (result, expected) => {
    const { pmi, says, sent, notices } = server(1);
    says(0, 'cmd=barrier_in');
    says(1, 'cmd=barrier_in');
    const failed = (id?: string) =>
      makeFrame(FrameKind.keyFailed, {
        payload: encodeKeyFailed({ key: keyOf(0, id), result, sentence: 'a sentence' }),
      });
    expect(pmi.answered(failed('x'.repeat(128)))).toBe(false);
    expect(pmi.answered(failed())).toBe(true);
    expect(pmi.answered(failed())).toBe(true);
    pmi.rankEnded(1, exit(1));
    vi.advanceTimersByTime(999);
    expect([sent(), notices()]).toEqual([[], expected]);
    vi.advanceTimersByTime(1);
    expect(sent()).toEqual(['0 close']);
  });

  it('connections are left alone after the end', () => {
    const { pmi, says, sent } = server(1);
    says(0, 'cmd=barrier_in');
    says(1, 'cmd=barrier_in');
    const payload = encodeKeyFailed({ key: keyOf(0), result: NcclResult.invalidUsage, sentence: 's' });
    pmi.answered(makeFrame(FrameKind.keyFailed, { payload }));
    pmi.close();
    vi.advanceTimersByTime(5000);
    expect(sent()).toEqual([]);
  });

  it('a rank that has ended is not waited for, and gets no answer', () => {
    const { pmi, says, sent, up } = server(1);
    pmi.rankEnded(0, exit(0));
    says(0, 'cmd=get_appnum');
    says(1, 'cmd=barrier_in');
    expect([sent(), up.length]).toEqual([[], 1]);
    const other = server(1);
    other.says(1, 'cmd=barrier_in');
    expect(other.up).toEqual([]);
    other.pmi.rankEnded(0, exit(0));
    expect(other.up).toHaveLength(1);
  });
});

describe('the end of a rank', () => {
  const FURTHER = 'rank 0 ran another MPI program after MPI_Finalize: a rank can run one, so start ncclrun for each';
  it.each<[number | null, number | null, boolean, string[]]>([
    [null, SIGPIPE, true, [FURTHER]],
    [128 + SIGPIPE, null, true, [FURTHER]],
    [SIGPIPE, null, true, []],
    [null, SIGPIPE, false, []],
    [0, null, true, []],
  ])('exit code %j and signal %j after MPI_Finalize (%s) gives the notices %j', (code, signal, finalizes, expected) => {
    const { pmi, says, notices } = server();
    if (finalizes) says(0, 'cmd=finalize');
    pmi.rankEnded(0, exit(code, signal));
    expect(notices()).toEqual(expected);
  });

  it.each([
    [3, 3],
    [0, 1],
    [256, 1],
    [259, 3],
  ])('MPI_Abort with %i ends the job with %i', (asked, exitCode) => {
    const { says, reports } = server();
    says(1, `cmd=abort exitcode=${asked}`);
    expect(reports).toMatchObject([{ type: 'mpi-abort', rank: 1, exitCode }]);
  });
});
