/** Ranks that join their communicator too late, and failures that decide a job after its attempts. */
import { expect, test } from 'vitest';
import { FrameKind, OUTPUT_STDERR } from '../../control/messages/frame.ts';
import { scriptedJob, turn } from '../rig/scripted-host.ts';

const late = { seconds: 5, what: 'communicator 1a2b', missing: ['rank 1 (a)', 'rank 2 (b)'] };

test('the job ends with status 124 and the last words of the first late rank that said something', async () => {
  const { agents, job, up, events, result } = scriptedJob(['a', 'b'], 2);
  await up();
  agents[0]?.say(FrameKind.output, 0, Buffer.from('another\n'), OUTPUT_STDERR);
  agents[1]?.say(FrameKind.output, 2, Buffer.from('the data is slow\n'), OUTPUT_STDERR);
  agents[1]?.say(FrameKind.output, 3, Buffer.from('later\n'), OUTPUT_STDERR);
  job.failures.joinedTooLate(late, [1, 2, 3]);
  await turn();
  const failure = { type: 'init-timeout', ...late, stderr: { rank: 2, tail: ['the data is slow'] } };
  expect(events.filter(({ type }) => type === 'failure')).toMatchObject([{ failure, primary: true }]);
  for (const agent of agents) agent.ended();
  expect(await result()).toMatchObject({ ok: false, reason: 'init-timeout', exitCode: 124 });
});

test('late ranks that said nothing have no last words, and ranks that we end are not late', async () => {
  const { agents, job, up, events } = scriptedJob(['a'], 2);
  await up();
  job.failures.joinedTooLate(late, [0, 1]);
  await turn();
  job.failures.joinedTooLate(late, [0]);
  await turn();
  const failures = events.filter(({ type }) => type === 'failure');
  expect(failures).toMatchObject([{ failure: { type: 'init-timeout', stderr: null }, primary: true }]);
  agents[0]?.ended();
});

test('the reason why there is no other attempt decides the job', async () => {
  const { agents, job, up, events, result } = scriptedJob(['a'], 1);
  await up();
  agents[0]?.exited(0, 3 << 8);
  await turn();
  const failure = { type: 'timeout', seconds: 7 } as const;
  job.failures.overrule(failure);
  job.failures.overrule(failure);
  agents[0]?.ended();
  const { reason, failures } = await result();
  expect(reason).toBe('timeout');
  expect(failures.filter(({ type }) => type === 'timeout')).toEqual([failure]);
  expect(events.filter((event) => event.type === 'failure' && event.failure === failure)).toMatchObject([
    { primary: true },
    { primary: true },
  ]);
});

test('a connection is closed as lost only where its host is', async () => {
  const { agents, job, up } = scriptedJob(['a', 'b'], 1);
  await up();
  agents[0]?.exited(0, 0);
  agents[1]?.lost('connection reset');
  await turn();
  agents[0]?.ended();
  await Promise.all(job.hosts.map((host) => host.close()));
  expect(agents.map(({ closes }) => closes)).toEqual([[false], [true, false]]);
});
