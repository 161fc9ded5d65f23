/** Whose fault a hang is, from planted positions of all ranks in all communicators of a job. */
import { describe, expect, it } from 'vitest';
import type { CallArguments } from '../../control/messages/hang.ts';
import { judgeHangs } from '../../launcher/hang/judge.ts';
import { jobStatus } from '../../launcher/hang/status.ts';
import type { Hang, VerdictKind } from '../../launcher/model/hang.ts';
import { ended, FIRST_US, history, readings } from '../rig/positions.ts';
import type { Change, PlantedJob } from '../rig/positions.ts';

const four = [0, 1, 2, 3];
const [aa, bb, cc] = ['00000000000000aa', '00000000000000bb', '00000000000000cc'] as const;

const count = (length: number): number[] => Array.from({ length }, (_, index) => index);

function judge(job: PlantedJob, moved: readonly number[] = []): Hang[] {
  return judgeHangs(...readings(job, moved));
}

function one(job: PlantedJob): Hang {
  const [hang, ...others] = judge(job);
  if (hang === undefined || others.length > 0) throw new Error(`${others.length + 1} verdicts, or none`);
  return hang;
}

/** The kind, the ranks to blame, and whether it is sure. */
function short(job: PlantedJob): readonly [kind: VerdictKind, blamed: string, confidence: string] {
  const { kind, blamed, confidence } = one(job).verdict;
  return [kind, blamed.map(({ ranks }) => ranks).join(), confidence];
}

/** Rank 3 of four is elsewhere. */
const late = (change: Change): PlantedJob => ({ comms: [{ id: aa, ranks: four, changes: { 3: change } }] });

/** Each rank waits for the one before it. */
const ring = (ranks: readonly number[]): Record<number, Change> =>
  Object.fromEntries(ranks.map((rank, index) => [rank, { waitsFor: (index + ranks.length - 1) % ranks.length }]));

describe('a rank that does not come', () => {
  it('the verdict has the call, who waits, for how long, and the kind', () => {
    const hang = one(late(ended(16)));
    const { verdict, ...flat } = hang;
    expect(flat).toEqual({
      communicator: aa,
      operation: 17,
      call: 'allReduce of 4096 bytes',
      late: ['rank 3 on h1 (pid 73) has begun none since operation 16 (allReduce), which it has ended'],
      waits: [],
      waiting: '0-2',
      seconds: 31.3,
    });
    expect(verdict).toMatchObject({
      schemaVersion: 1,
      kind: 'stuck-outside',
      confidence: 'likely',
      communicator: { id: aa, epoch: 0, size: 4 },
      operation: { number: 17, collective: 'allReduce', bytes: 4096 },
      blamed: [{ ranks: '3', host: 'h1', pid: 73, where: 'outside', last: { number: 16, collective: 'allReduce' } }],
      waiting: { ranks: '0-2', count: 3, longestSeconds: 31.3 },
      chain: [{ from: 0, to: 3, communicator: aa }],
      consequences: 0,
      message: `${flat.late[0] ?? ''}: ranks 0-2 wait in operation 17 (allReduce of 4096 bytes) of communicator ${aa}, without progress for 31.3 s`,
    });
    expect(verdict.classes).toMatchObject([
      { ranks: '0-2', count: 3, where: 'inside', communicator: aa },
      { ranks: '3', count: 1, where: 'outside', communicator: null, operation: null },
    ]);
  });

  it.each([0, 1, 2, 3])('rank %i is blamed when it skips a call, whichever rank the others wait for', (rank) => {
    const ring = Object.fromEntries(four.map((each) => [each, { waitsFor: (each + 3) % 4 }]));
    const changes = { ...ring, [rank]: ended(16) };
    expect(short({ comms: [{ id: aa, ranks: four, changes }] })).toEqual(['stuck-outside', `${rank}`, 'likely']);
  });

  it('a rank that computes is late, and one that sleeps is stuck outside', () => {
    expect(short({ ...late(ended(16)), cpuMs: { 3: 240 } })).toEqual(['late', '3', 'likely']);
    expect(one({ ...late(ended(16)), cpuMs: { 3: 240 } }).late[0]).toMatch(/which it has ended, running$/);
    expect(
      one({ ...late(ended(0)), processes: { 3: { sleep: { call: 'read', file: '/data/x', channel: 'pipe_read' } } } })
        .late,
    ).toEqual(['rank 3 on h1 (pid 73) has begun no operation, asleep in read of /data/x']);
  });

  it('a rank that is still in an earlier operation is late', () => {
    const earlier = one(late({ operation: 16 }));
    expect(earlier.late).toEqual(['rank 3 on h1 (pid 73) is still in operation 16 (allReduce)']);
    expect(earlier.verdict).toMatchObject({ kind: 'late', confidence: 'likely' });
  });

  it('several late ranks share one sentence', () => {
    const job = { comms: [{ id: aa, ranks: count(6), changes: { 1: ended(16), 4: ended(16), 5: ended(0) } }] };
    expect(one(job).late).toEqual([
      'rank 1 on h0 (pid 71) and rank 4 on h2 (pid 74) have begun none since operation 16 (allReduce), which they have ended',
      'rank 5 on h2 (pid 75) has begun no operation',
    ]);
  });

  it('900 late ranks are one sentence with ranges, of which ten stand singly in the verdict', () => {
    const changes = Object.fromEntries(count(900).map((rank) => [rank + 100, ended(16)]));
    const hang = one({ comms: [{ id: aa, ranks: count(1024), changes }], ranksPerHost: 8, cpuMs: { 100: 250 } });
    expect(hang.late).toEqual([
      '900 ranks on 113 hosts (100-999) have begun none since operation 16 (allReduce), which they have ended',
    ]);
    expect(hang.verdict.message.length).toBeLessThan(400);
    expect(hang.verdict.blamed).toHaveLength(11);
    expect(hang.verdict.blamed[10]).toMatchObject({ ranks: '110-999', host: null, where: 'outside' });
  });
});

describe('the process of a blamed rank', () => {
  it.each([
    ['stopped', 'stopped', 'certain', 'is stopped (SIGSTOP, or a debugger)'],
    ['frozen', 'stopped', 'certain', 'is frozen (by its control group)'],
    ['zombie', 'rank-dead', 'certain', 'has ended: its process is gone'],
    ['uninterruptible', 'stuck-outside', 'likely', 'is still in operation 17 (allReduce), in uninterruptible sleep'],
  ] as const)('a process that is %s is blamed with the kind %s', (state, kind, confidence, words) => {
    const job: PlantedJob = { comms: [{ id: aa, ranks: four }], processes: { 2: { state } } };
    expect(short(job)).toEqual([kind, '2', confidence]);
    expect(one(job).late).toEqual([`rank 2 on h1 (pid 72) ${words}`]);
    expect(one(job).verdict.evidence).toContainEqual({
      kind: 'process-state',
      host: 'h1',
      subject: 'rank 2',
      value: state,
      unit: null,
    });
  });

  it('a process that the agent does not find is not blamed for that', () => {
    const job: PlantedJob = {
      comms: [{ id: aa, ranks: four, changes: { 1: ended(16) } }],
      processes: { 2: { state: 'gone' } },
    };
    expect(short(job)).toEqual(['stuck-outside', '1', 'likely']);
  });

  it('a process that is gone has no share of a processor in the evidence', () => {
    const gone: PlantedJob = {
      comms: [{ id: aa, ranks: four, changes: { 2: ended(16) } }],
      processes: { 2: { state: 'gone' } },
    };
    const { evidence } = one(gone).verdict;
    expect(evidence.map(({ kind }) => kind)).toContain('process-state');
    expect(evidence.map(({ kind }) => kind)).not.toContain('cpu-share');
  });

  it('uninterruptible sleep is named with the call, the file and the wait channel', () => {
    const sleep = { call: 'read', file: '/nfs/x', channel: 'folio_wait_bit_common' };
    const processes = { 2: { state: 'uninterruptible', sleep } } as const;
    expect(one({ comms: [{ id: aa, ranks: four, changes: { 2: ended(16) } }], processes }).late[0]).toMatch(
      /which it has ended, in uninterruptible sleep in read of \/nfs\/x \(folio_wait_bit_common\)$/,
    );
  });

  it('a rank that the CPU limit of its cgroup holds up is late', () => {
    const [first, second] = readings({ ...late(ended(16)), processes: { 3: { throttled: 5 } } });
    const processes = second.answers.get('h1')?.processes ?? [];
    const answers = new Map(second.answers);
    const h1 = second.answers.get('h1');
    if (h1 !== undefined) answers.set('h1', { ...h1, processes: processes.map((one) => ({ ...one, throttled: 7 })) });
    const [hang] = judgeHangs(first, { ...second, answers });
    expect(hang?.late[0]).toMatch(/, held up by the CPU limit of its cgroup$/);
    expect(hang?.verdict).toMatchObject({ kind: 'late' });
    expect(hang?.verdict.evidence).toContainEqual({
      kind: 'throttled',
      host: 'h1',
      subject: 'rank 3',
      value: 2,
      unit: 'periods',
    });
  });

  it('a stopped rank that nobody waits for is not blamed', () => {
    const lone = { id: bb, ranks: [9], all: ended(3) };
    const job: PlantedJob = {
      comms: [{ id: aa, ranks: four, changes: { 1: ended(16) } }, lone],
      processes: { 9: { state: 'stopped' } },
    };
    expect(short(job)).toEqual(['stuck-outside', '1', 'likely']);
  });
});

describe('a call too many', () => {
  it('the rank that made it is blamed, and not the others', () => {
    const others = Object.fromEntries(count(8).map((rank) => [rank, ended(16)]));
    const job: PlantedJob = { comms: [{ id: aa, ranks: count(8), changes: { ...others, 5: {} } }] };
    expect(short(job)).toEqual(['extra-call', '5', 'suspected']);
    expect(one(job).late).toEqual([
      'rank 5 on h2 (pid 75) has begun operation 17 (allReduce), which none of the 7 other ranks has, and they are idle',
    ]);
  });

  it('ranks that compute are late, even if they are many', () => {
    const others = Object.fromEntries(count(8).map((rank) => [rank, ended(16)]));
    const cpuMs = Object.fromEntries(count(8).map((rank) => [rank, 240]));
    const job: PlantedJob = { comms: [{ id: aa, ranks: count(8), changes: { ...others, 5: {} } }], cpuMs };
    expect(short(job)).toEqual(['late', '0,1,2,3,4,6,7', 'likely']);
  });
});

describe('several communicators', () => {
  it('the end of the chain is blamed, and the others are counted', () => {
    const job: PlantedJob = {
      comms: [
        { id: aa, ranks: [0, 1], changes: { 1: ended(16), 0: { waitedMs: 40_000 } } },
        { id: bb, ranks: [0, 2], changes: { 0: ended(4), 2: { operation: 5 } } },
        { id: cc, ranks: [2, 3], changes: { 2: ended(4), 3: { operation: 5 } } },
      ],
    };
    expect(short(job)).toEqual(['stuck-outside', '1', 'likely']);
    const { verdict } = one(job);
    expect(verdict.consequences).toBe(2);
    expect(verdict.message).toMatch(/; and 2 more communicators wait because of it$/);
  });

  it('ranks that wait for each other in two communicators are a deadlock, with the cycle', () => {
    const job: PlantedJob = {
      comms: [
        { id: aa, ranks: [0, 1], changes: { 1: ended(16) } },
        { id: bb, ranks: [0, 1], changes: { 0: ended(4), 1: { operation: 5 } } },
      ],
    };
    expect(short(job)).toEqual(['deadlock', '0,1', 'likely']);
    const { verdict, late } = one(job);
    expect(verdict.chain).toEqual([
      { from: 0, to: 1, communicator: aa },
      { from: 1, to: 0, communicator: bb },
    ]);
    expect(late[0]).toBe(
      `the ranks wait for each other: rank 0 on h0 (pid 70) waits in operation 17 (allReduce) of communicator ${aa} for rank 1; ` +
        `rank 1 on h0 (pid 71) waits in operation 5 (allReduce) of communicator ${bb} for rank 0`,
    );
  });

  it('a deadlock over four communicators prints the whole cycle', () => {
    const ids = count(4).map((index) => `00000000000000d${index}`);
    const comms = ids.map((id, index) => {
      const next = (index + 1) % 4;
      return { id, ranks: [index, next], changes: { [next]: ended(16) } };
    });
    expect(one({ comms }).verdict.chain.map(({ from, to }) => [from, to])).toEqual([
      [0, 1],
      [1, 2],
      [2, 3],
      [3, 0],
    ]);
  });

  it('a rank that makes progress in another communicator is late', () => {
    const job: PlantedJob = {
      comms: [
        { id: aa, ranks: [0, 1, 2], changes: { 1: ended(16) } },
        { id: bb, ranks: [1, 3], all: { operation: 9, hangs: false, waitedMs: 10 } },
      ],
    };
    const [hang] = judge(job, [1, 3]);
    expect(hang?.verdict).toMatchObject({ kind: 'late', blamed: [{ ranks: '1', where: 'other-communicator' }] });
    expect(hang?.late[0]).toContain(`; it makes progress in operation 9 (allReduce) of communicator ${bb}`);
  });

  it('two late ranks of two separate communicators share a verdict', () => {
    const job: PlantedJob = {
      comms: [
        { id: aa, ranks: [0, 1], changes: { 1: ended(16) } },
        { id: bb, ranks: [2, 3], changes: { 3: ended(16) } },
      ],
    };
    expect(short(job)).toEqual(['stuck-outside', '1,3', 'likely']);
    expect(one(job).verdict.consequences).toBe(1);
  });

  it('sends and receives in a circle are a deadlock, which is suspected only', () => {
    const all = { collective: 'sendRecv' };
    const job: PlantedJob = {
      comms: [{ id: aa, ranks: [0, 1], all, changes: { 0: { waitsFor: 1 }, 1: { waitsFor: 0 } } }],
    };
    expect(short(job)).toEqual(['deadlock', '0,1', 'suspected']);
  });
});

describe('calls that differ', () => {
  const sum: CallArguments = { collective: 'allReduce', count: 8, type: 'float32', operator: 'sum', root: null };
  const root: CallArguments = { collective: 'broadcast', count: 8, type: 'int8', operator: null, root: 0 };

  it.each<[VerdictKind, CallArguments, CallArguments]>([
    ['mismatch-size', sum, { ...sum, count: 9 }],
    ['mismatch-type', sum, { ...sum, type: 'int32' }],
    ['mismatch-type', sum, { ...sum, operator: 'max' }],
    ['mismatch-root', root, { ...root, root: 2 }],
    ['mismatch-order', sum, root],
  ])('%s is found from the hashes, and the fewer ranks are blamed', (kind, most, few) => {
    const changes = { 2: { calls: history(9, [7, 1], few) } };
    const job: PlantedJob = { comms: [{ id: aa, ranks: four, all: { calls: history(9, [5, 1], most) }, changes }] };
    expect(short(job)).toEqual([kind, '2', 'certain']);
    expect(one(job).late[0]).toMatch(
      /^the ranks’ calls differ from the communicator’s collective number 9: rank 2 on h1 \(pid 72\) called /,
    );
  });

  it('both sides are named where neither is the smaller', () => {
    const calls = { calls: history(9, [7, 1], { ...sum, count: 9 }) };
    const all = { calls: history(9, [5, 1], sum) };
    expect(short({ comms: [{ id: aa, ranks: four, all, changes: { 0: calls, 3: calls } }] })).toEqual([
      'mismatch-size',
      '0,3,1,2',
      'suspected',
    ]);
  });

  it('a difference further back is an order that differs', () => {
    const all = { calls: history(9, [5, 4, 1], sum) };
    const changes = { 1: { calls: history(10, [9, 8, 7, 1], sum) } };
    expect(short({ comms: [{ id: aa, ranks: four, all, changes }] })).toEqual(['mismatch-order', '1', 'likely']);
  });
});

describe('all ranks inside', () => {
  it('a cycle inside one operation names the connections that wait, and not a deadlock', () => {
    const changes: Record<number, Change> = {
      0: { waitsFor: 1, nics: ['eth0', 'eth1'] },
      1: { waitsFor: 0, waitedMs: 9000 },
    };
    const job: PlantedJob = { comms: [{ id: aa, ranks: [0, 1], changes }], ranksPerHost: 1 };
    const hang = one(job);
    expect(hang).toMatchObject({
      late: [],
      waits: ['rank 0 on h0 waits for rank 1 on h1 (eth0 to eth1)', 'rank 1 on h1 waits for rank 0 on h0'],
      verdict: { kind: 'stuck-inside', confidence: 'likely', blamed: [{ ranks: '1', where: 'inside' }] },
    });
    expect(hang.verdict.message).toMatch(
      /^no rank is behind, and none makes progress: .*: rank 0 on h0 waits for rank 1 on h1 \(eth0 to eth1\); rank 1 on h1 waits for rank 0 on h0$/,
    );
  });

  it('a rank that waits for one which has ended the operation waits for their connection', () => {
    const changes = { 0: { waitsFor: 1 }, 1: ended(17) };
    const hang = one({ comms: [{ id: aa, ranks: [0, 1], changes }], ranksPerHost: 1 });
    expect(hang.verdict).toMatchObject({ kind: 'stuck-inside', blamed: [{ ranks: '1' }] });
    expect(hang.waits).toEqual(['rank 0 on h0 waits for rank 1 on h1']);
  });

  it('unknown is a verdict, with what was ruled out', () => {
    const { verdict } = one({ comms: [{ id: aa, ranks: four }] });
    expect(verdict).toMatchObject({ kind: 'unknown', confidence: 'suspected', blamed: [] });
    expect(verdict.evidence.map(({ kind, value }) => `${kind}: ${value}`)).toEqual([
      'ruled-out: no rank is behind',
      'ruled-out: no rank is stopped',
      'ruled-out: the ranks’ calls agree as far as they are remembered',
      'ruled-out: all hosts answer',
    ]);
  });
});

describe('ranks that no answer has', () => {
  it('ranks that have left the communicator are counted', () => {
    const hang = one({ comms: [{ id: aa, ranks: [0, 1, 2], size: 4 }] });
    expect(hang).toMatchObject({ late: ['1 of its ranks has left it'], verdict: { kind: 'left' } });
  });

  it('a silent host is named', () => {
    const hang = one({ comms: [{ id: aa, ranks: four }], silent: ['h1'] });
    expect(hang).toMatchObject({ late: ['h1 does not say where its ranks are'], verdict: { kind: 'host-silent' } });
  });

  it('a host that answers the second query only has ranks that wait', () => {
    const [first, second] = readings(late(ended(16)));
    const answers = new Map([...first.answers].filter(([host]) => host === 'h1'));
    const [hang] = judgeHangs({ ...first, answers }, second);
    expect(hang).toMatchObject({ waiting: '0-2', verdict: { kind: 'stuck-outside', blamed: [{ ranks: '3' }] } });
  });

  it('an answer without room for all positions does not make its ranks leavers', () => {
    expect(one({ comms: [{ id: aa, ranks: [0, 1, 2], size: 4 }], omitted: 1 }).verdict.kind).toBe('unknown');
  });
});

describe('kernels that wait', () => {
  // As read from a job: the warps of a kernel say in turn when each of them began to wait.
  const begunUs = [-31_260_000, -31_259_998, -31_258_750, -31_260_000, -31_259_100];
  const waiting = (look: number): PlantedJob => ({
    comms: [
      {
        id: aa,
        ranks: four,
        all: { byKernel: true },
        changes: {
          ...Object.fromEntries(
            [0, 1, 2].map((rank) => [rank, { progressUs: FIRST_US + (begunUs[look + rank] ?? 0) }]),
          ),
          3: ended(16),
        },
      },
    ],
  });

  it.each([0, 1, 2])('the late rank is named at look %i, whichever warps the readings have seen', (look) => {
    const [first] = readings(waiting(look));
    const [, second] = readings(waiting((look + 1) % 3));
    expect(judgeHangs(first, second)).toMatchObject([{ verdict: { blamed: [{ ranks: '3' }] }, waiting: '0-2' }]);
    const { groups } = jobStatus(first, second, { ranks: 4, takenAt: 0, verdicts: [] });
    expect(groups[0]?.shares).toMatchObject([
      { condition: 'waiting', count: 3 },
      { condition: 'idle', count: 1 },
    ]);
  });
});

describe('no hang', () => {
  it('ranks that moved between the readings withdraw their votes', () => {
    expect(judge({ comms: [{ id: aa, ranks: four, changes: { 3: ended(16) } }] }, [0, 1, 2])).toEqual([]);
  });

  it('ranks whose kernels made progress between the readings withdraw their votes, though they wait at both', () => {
    const job: PlantedJob = { comms: [{ id: aa, ranks: four, all: { byKernel: true }, changes: { 3: ended(16) } }] };
    expect(judge(job)).toMatchObject([{ verdict: { kind: 'stuck-outside' } }]);
    expect(judge(job, [0, 1, 2])).toEqual([]);
  });

  it('ranks that wait for a short time only are not judged', () => {
    expect(judge({ comms: [{ id: aa, ranks: four, all: { hangs: false }, changes: { 3: ended(16) } }] })).toEqual([]);
  });

  it('a job without a communicator has no verdict', () => {
    expect(judge({ comms: [] })).toEqual([]);
  });
});

describe('1,024 ranks', () => {
  it('the judge names the one that is stuck outside in a job with 137 communicators', () => {
    const tensor = count(128).map((group) => count(8).map((rank) => group * 8 + rank));
    const data = count(8).map((rank) => count(128).map((group) => group * 8 + rank));
    const comms = [...tensor, count(1024)].map((ranks, index) => ({
      id: index.toString(16).padStart(16, '0'),
      ranks,
      all: ended(4),
    }));
    const waiting = data.map((ranks, index) => ({ id: `d${index}`.padStart(16, '0'), ranks, changes: ring(ranks) }));
    const [ofRank0] = waiting;
    if (ofRank0 !== undefined) ofRank0.changes[512] = ended(16);
    const [first, second] = readings({ comms: [...comms, ...waiting], ranksPerHost: 8 });
    const hangs = judgeHangs(first, second);
    expect(hangs.map(({ verdict }) => [verdict.kind, verdict.blamed.map(({ ranks }) => ranks).join()])).toContainEqual([
      'stuck-outside',
      '512',
    ]);
  });

  it('the judge names ten ranks of a deadlock over 1,024 communicators', () => {
    const comms = count(1024).map((index) => {
      const next = (index + 1) % 1024;
      return { id: index.toString(16).padStart(16, '0'), ranks: [index, next], changes: { [next]: ended(16) } };
    });
    const [first, second] = readings({ comms, ranksPerHost: 8 });
    const [hang] = judgeHangs(first, second);
    expect(hang?.verdict).toMatchObject({ kind: 'deadlock', consequences: 1023 });
    expect(hang?.late[0]).toMatch(/; and 1014 more in the same way$/);
  });
});
