/** How agents on other hosts are started: orders, leases, ends and further attempts, over a remote shell that the test plays. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { AGENT_START } from '../../launcher/remote/shell/shell.ts';
import { StagingMessage } from '../../launcher/remote/staging/protocol.ts';
import { playedShell } from '../rig/played-shell.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

describe('an agent that starts', () => {
  test('the order is sent at once, and frames pass in both directions', async () => {
    const { runs, seen, start, settle } = await playedShell();
    const agent = start();
    await settle();
    const [run] = runs;
    run?.progress.step('authentication');
    run?.progress.step(AGENT_START);
    run?.progress.step(AGENT_START);
    run?.say(FrameKind.hello);
    agent.send(makeFrame(FrameKind.start));
    expect(run?.kinds()).toEqual([FrameKind.order, FrameKind.start]);
    expect(seen.frames).toEqual([FrameKind.hello]);
    expect(seen.steps).toEqual(['connecting', 'authentication', AGENT_START]);
    await run?.ends({ stderr: 'bye' });
    expect(seen.ends).toEqual([{ problem: 'bye', failure: null }]);
  });

  test('a link that breaks is its problem, and the process is killed', async () => {
    const { runs, seen, start, settle } = await playedShell();
    start();
    await settle();
    runs[0]?.say(FrameKind.hello);
    await runs[0]?.ends({ stderr: 'noise' }, 'reset by peer');
    expect([runs[0]?.ended, seen.ends]).toEqual([['kill'], [{ problem: 'reset by peer', failure: null }]]);
  });

  test.each([
    [true, false, ['close', 'let go']],
    [true, true, ['close', 'let go, lost']],
    [false, false, ['close', 'kill']],
  ])('an agent that has spoken (%s) and is lost (%s) is ended as %j', async (spoken, lost, ended) => {
    const { runs, seen, start, settle } = await playedShell();
    const agent = start();
    await settle();
    if (spoken) runs[0]?.say(FrameKind.hello);
    const closed = agent.close(lost);
    await runs[0]?.ends();
    await closed;
    expect([runs[0]?.ended, seen.ends]).toEqual([ended, [{ problem: null, failure: null }]]);
  });

  test('an agent that is not wanted any more before its process is there gets no order', async () => {
    const { runs, start, settle } = await playedShell();
    const agent = start();
    const closed = agent.close(false);
    await settle();
    await runs[0]?.ends();
    await closed;
    expect(runs.flatMap((run) => run.kinds())).toEqual([]);
  });

  test('a silent agent is lost after its lease, and hears from us until then', async () => {
    const { runs, seen, start, settle } = await playedShell();
    start();
    await settle();
    runs[0]?.say(FrameKind.hello);
    vi.advanceTimersByTime(3000);
    expect(runs[0]?.kinds().filter((kind) => kind === FrameKind.heartbeat).length).toBeGreaterThanOrEqual(2);
    expect(seen.frames).toEqual([FrameKind.hello]);
    vi.advanceTimersByTime(10_000);
    expect([seen.frames.includes(FrameKind.failure), runs[0]?.ended]).toEqual([true, ['close', 'let go, lost']]);
    await runs[0]?.ends();
  });
});

describe('another attempt', () => {
  test('a shell that was dropped is tried six times, after growing pauses', async () => {
    const { runs, seen, start, settle } = await playedShell(false, true);
    start();
    for (let number = 1; number <= 6; number++) {
      await settle();
      expect(runs).toHaveLength(number);
      await runs.at(-1)?.ends({ status: 255, stderr: 'Connection reset by peer' });
      vi.advanceTimersByTime(50 * 2 ** number - 1);
      await settle();
      expect(runs).toHaveLength(number);
      vi.advanceTimersByTime(50 * 2 ** number + 1);
    }
    await settle();
    expect([runs.length, seen.ends.length]).toEqual([6, 1]);
    expect(seen.steps).toEqual(['connecting', ...[2, 3, 4, 5, 6].map((number) => `connecting, attempt ${number}`)]);
    expect(seen.ends[0]?.failure).toMatchObject({
      type: 'host-unreachable',
      cause: 'other',
      detail: 'Connection reset by peer',
    });
  });

  test('a cached copy that does not start is replaced once', async () => {
    const { runs, seen, start, settle } = await playedShell(true);
    start();
    await settle();
    runs[0]?.say(FrameKind.staging, StagingMessage.cached);
    runs[0]?.say(FrameKind.failure);
    await runs[0]?.ends({ status: 1 });
    await settle();
    expect(runs.map(({ command }) => / anew\b|'anew'/u.test(command))).toEqual([false, true]);
    runs[1]?.say(FrameKind.staging, StagingMessage.cached);
    await runs[1]?.ends({ status: 1, stderr: 'crashed' });
    expect([runs.length, seen.ends[0]?.failure]).toMatchObject([
      2,
      { type: 'agent', message: 'the agent on node7 did not come up: crashed' },
    ]);
  });

  test('frames wait behind the order until a staged agent speaks', async () => {
    const { runs, seen, start, settle } = await playedShell(true);
    const agent = start();
    await settle();
    agent.send(makeFrame(FrameKind.start));
    runs[0]?.say(FrameKind.staging, StagingMessage.alive);
    runs[0]?.say(FrameKind.staging, StagingMessage.cached);
    expect(runs[0]?.kinds()).toEqual([FrameKind.order]);
    runs[0]?.say(FrameKind.hello);
    expect([runs[0]?.kinds(), seen.frames]).toEqual([[FrameKind.order, FrameKind.start], [FrameKind.hello]]);
    expect(seen.steps).toEqual(['connecting', AGENT_START]);
    await runs[0]?.ends();
  });
});
