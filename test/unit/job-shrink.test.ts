/** What reported ends and failures mean for the job, above all with --on-failure shrink: the order of the reports of several hosts does not matter. */
import { describe, expect, test } from 'vitest';
import { FrameKind } from '../../control/messages/frame.ts';
import { encodeLeft } from '../../control/messages/rendezvous-codec.ts';
import { JOIN_ROUND, LeftHow, NAMES_JOB_RANK } from '../../control/messages/rendezvous.ts';
import type { ScriptedHost } from '../rig/scripted-host.ts';
import { scriptedRun } from '../rig/scripted-run.ts';

/** Something that the agent of rank `rank` reports; each rank runs on a host of its own. */
type News = (agent: ScriptedHost, rank: number) => void;

const SIGKILL = 9;
const EARLY = 5;
const LATE = 9;

const endsWell: News = (agent, rank) => agent.exited(rank, 0);
const isKilled: News = (agent, rank) => agent.exited(rank, SIGKILL, EARLY);
const failsLater: News = (agent, rank) => agent.exited(rank, 3 << 8, LATE);
const hostIsLost: News = (agent) => agent.lost('reset');

const key = { id: 'k'.repeat(128), epoch: 0, round: JOIN_ROUND };

/** The agent's ranks waited for `blamed`, which has ended or will. */
const misses =
  (blamed: number): News =>
  (agent) =>
    agent.say(FrameKind.left, blamed, encodeLeft({ key, rank: 0, how: LeftHow.missed, reason: 'it did not join' }));

/** The agent's rank, whose end comes next, had lost `other`. */
const suspects =
  (other: number): News =>
  (agent, rank) =>
    agent.say(
      FrameKind.left,
      rank,
      encodeLeft({ key, rank: other, how: LeftHow.suspected, reason: '' }),
      NAMES_JOB_RANK,
    );

interface Reported {
  readonly rank: number;
  readonly news: News;
}

/** All orders in which the news of several hosts can arrive; those of one host keep their order. */
function ordersOf(perRank: readonly (readonly News[])[]): readonly (readonly Reported[])[] {
  if (perRank.every((news) => news.length === 0)) return [[]];
  return perRank.flatMap(([news, ...rest], rank) =>
    news === undefined ? [] : ordersOf(perRank.with(rank, rest)).map((order) => [{ rank, news }, ...order]),
  );
}

function runOf(order: readonly Reported[], ranks: number) {
  const hosts = Array.from({ length: ranks }, (_, rank) => `h${rank}:1`).join(',');
  const agents: ScriptedHost[] = [];
  return scriptedRun(`-n ${ranks} -H ${hosts} --on-failure shrink prog`, {
    started(agent, rank) {
      agents[rank] = agent;
      if (Object.keys(agents).length < ranks) return;
      for (const reported of order) {
        const agent = agents[reported.rank];
        if (agent !== undefined) reported.news(agent, reported.rank);
      }
    },
  });
}

/** The distinct ends of the job over all orders of the news. */
async function endsOf(perRank: readonly (readonly News[])[]) {
  const ends = new Set<string>();
  for (const order of ordersOf(perRank)) {
    const { result } = runOf(order, perRank.length);
    const { ok, exitCode, reason, failures } = await result;
    ends.add(JSON.stringify({ ok, exitCode, reason, failures: failures.map(({ type }) => type).toSorted() }));
  }
  return [...ends].map((end): unknown => JSON.parse(end));
}

describe('the job ends with 0', () => {
  test.each([
    ['a rank is killed', [endsWell, endsWell, isKilled], ['rank-signal']],
    ['all ranks but one fail', [failsLater, endsWell, isKilled], ['rank-exit', 'rank-signal']],
    ['a host is lost', [endsWell, endsWell, hostIsLost], ['host-lost']],
    ['a host is lost and a rank is killed', [hostIsLost, endsWell, isKilled], ['host-lost', 'rank-signal']],
  ])('when %s and another rank ends well, in whatever order this is reported', async (_, news, failures) => {
    expect(await endsOf(news.map((one) => [one]))).toEqual([{ ok: true, exitCode: 0, reason: 'ok', failures }]);
  });

  test('when the host of a rank that has ended well is lost, before or after the other ranks end', async () => {
    const failures = ['host-lost'];
    expect(await endsOf([[endsWell, hostIsLost], [endsWell]])).toEqual([
      { ok: true, exitCode: 0, reason: 'ok', failures },
    ]);
  });
});

describe('the job fails', () => {
  test('and its earliest failure decides when no rank ends well, in whatever order this is reported', async () => {
    const failures = ['rank-exit', 'rank-exit', 'rank-signal'];
    expect(await endsOf([[failsLater], [isKilled], [failsLater]])).toEqual([
      { ok: false, exitCode: 137, reason: 'rank-signal', failures },
    ]);
  });

  test('when the only rank that ended with 0 is one that others lacked, in whatever order this is reported', async () => {
    const failures = ['rank-exit', 'rank-missing'];
    expect(await endsOf([[misses(1), failsLater], [endsWell]])).toMatchObject([{ ok: false, failures }]);
  });

  test('when the only rank that ended with 0 is the one that the failed rank had lost', async () => {
    expect(await endsOf([[suspects(1), failsLater], [endsWell]])).toEqual([
      { ok: false, exitCode: 3, reason: 'rank-exit', failures: ['rank-exit'] },
    ]);
  });
});

test('the event of a failure after all ranks have ended counts no ranks that are left', async () => {
  const { result, ofType } = runOf(
    [
      { rank: 0, news: endsWell },
      { rank: 1, news: isKilled },
    ],
    2,
  );
  await result;
  expect(ofType('shrink').map(({ failure, left }) => [failure.type, left])).toEqual([['rank-signal', 0]]);
  expect(ofType('failure')).toEqual([]);
});

test('a rank that others lack ends the job at once without --on-failure shrink, though it runs', async () => {
  const { result, ofType } = scriptedRun('-n 2 -H a:1,b:1 --grace 0.01 prog', {
    started(agent, rank) {
      if (rank === 0) misses(1)(agent, rank);
    },
  });
  expect(await result).toMatchObject({
    ok: false,
    reason: 'rank-missing',
    failures: [{ type: 'rank-missing', rank: 1 }],
  });
  expect(ofType('shrink')).toEqual([]);
});

test('a failure after the one that decides is reported beside it, once', async () => {
  const { result, ofType } = scriptedRun('-n 2 -H a:1,b:1 prog', {
    started(agent, rank) {
      if (rank === 0) isKilled(agent, rank);
      else setImmediate(() => setImmediate(() => hostIsLost(agent, rank)));
    },
  });
  expect(await result).toMatchObject({
    reason: 'rank-signal',
    failures: [{ rank: 0 }, { type: 'host-lost', host: 'b' }],
  });
  expect(ofType('failure').map(({ failure, primary }) => [failure.type, primary])).toEqual([
    ['rank-signal', true],
    ['host-lost', false],
  ]);
});
