/** Why no agent spoke on another host, and the messages of a host that gets a copy of ncclrun. */
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FrameKind } from '../../control/messages/frame.ts';
import { makeConnectionError } from '../../launcher/remote/shell/connection-error.ts';
import { AGENT_START, type RemoteExit } from '../../launcher/remote/shell/shell.ts';
import { explainSsh } from '../../launcher/remote/ssh-error.ts';
import { HUNG_STATUS, StagingMessage, StagingRefusal } from '../../launcher/remote/staging/protocol.ts';
import { StagingSequence } from '../../launcher/remote/staging/sequence.ts';
import { UNTRUSTED } from '../../launcher/remote/staging/remote-script.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { type Played, playedShell } from '../rig/played-shell.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'] }));
afterEach(() => void vi.useRealTimers());

async function failing(
  exit: Partial<RemoteExit>,
  before: (run: Played) => void = () => undefined,
  problem: string | null = null,
) {
  const { runs, seen, start, settle } = await playedShell();
  start();
  await settle();
  const [run] = runs;
  if (run === undefined) throw new Error('nothing was started');
  before(run);
  await run.ends(exit, problem);
  return seen.ends[0]?.failure;
}

const began = (run: Played) => run.say(FrameKind.staging, StagingMessage.alive);

const explained = (stderr: string, status: number | null = 255) =>
  explainSsh(hostNamed('h'), { status, stderr }, 'ssh -v h true').detail;

describe('why no agent spoke', () => {
  test.each<[string, Partial<RemoteExit>, ((run: Played) => void) | undefined, string | null, object]>([
    [
      'not found',
      { status: 127 },
      began,
      null,
      { type: 'agent', message: expect.stringMatching(/^ncclrun was not found on node7: looked for \//u) },
    ],
    ['not executable', { status: 126 }, began, null, { message: expect.stringMatching(/^ncclrun was not found/u) }],
    [
      'a login that does not run our command',
      { status: 127, stderr: 'ssh: error while loading shared libraries: libcrypto.so.3\n' },
      undefined,
      null,
      {
        type: 'host-unreachable',
        cause: 'shell',
        detail:
          'the login ended with status 127 before it ran our command:\nssh: error while loading shared libraries: libcrypto.so.3',
      },
    ],
    [
      'not to be trusted',
      { status: UNTRUSTED, stderr: 'x\n/opt is anybody’s\n' },
      undefined,
      null,
      { message: "ncclrun on node7 may be another user's: /opt is anybody’s" },
    ],
    [
      'hung',
      { status: HUNG_STATUS, stderr: 'ncclrun-watchdog: it waits for a disk\n' },
      undefined,
      null,
      { message: 'the agent on node7 did not come up: it waits for a disk' },
    ],
    [
      'hung without a reason',
      { status: HUNG_STATUS },
      undefined,
      null,
      { message: 'the agent on node7 did not come up: its watchdog ended it' },
    ],
    [
      'a hung agent behind a message',
      { status: 1 },
      (run) => run.say(FrameKind.staging, StagingMessage.hung),
      null,
      { message: 'the agent on node7 did not come up: its watchdog ended it' },
    ],
    [
      'strange output',
      { status: 0 },
      undefined,
      'not a frame',
      {
        message: "what came from node7 is not ncclrun's agent: not a frame",
        remedy: 'its login must run our command and may only print before it: ssh node7 true',
      },
    ],
    [
      'an agent that ended',
      { status: 3 },
      began,
      null,
      { message: 'the agent on node7 did not come up: it ended with status 3' },
    ],
    [
      'an agent that was killed',
      { status: null },
      began,
      null,
      { message: 'the agent on node7 did not come up: it was killed, or its connection ended' },
    ],
    [
      'an ssh that failed after the beginning',
      { status: 255 },
      began,
      null,
      { type: 'host-unreachable', cause: 'shell', detail: 'ssh ended with status 255 and said nothing' },
    ],
    [
      'a shell with a reason',
      { status: 1, failure: { type: 'agent', host: 'h', phase: 'hello', message: 'm', remedy: null } },
      undefined,
      null,
      { message: 'm' },
    ],
    [
      'a shell that knows why',
      { problem: { cause: 'timeout', detail: 'd', remedy: 'r', transient: false } },
      began,
      null,
      { type: 'host-unreachable', cause: 'timeout', detail: 'd', remedy: 'r' },
    ],
  ])('%s has its failure', async (_what, exit, before, problem, failure) => {
    expect(await failing(exit, before, problem)).toMatchObject(failure);
  });

  test.each<[string, (run: Played) => void, number, object]>([
    ['a connection that is not made', () => undefined, 61_000, { cause: 'timeout', remedy: 'try: ssh node7 true' }],
    [
      'a login that does not run the command',
      (run) => run.progress.step(AGENT_START),
      11_000,
      { cause: 'timeout', remedy: 'try: ssh node7 true; a larger ConnectTimeout waits longer' },
    ],
    [
      'a host that becomes silent',
      (run) => run.say(FrameKind.staging, StagingMessage.alive),
      6000,
      { cause: 'timeout', remedy: 'try: ssh node7 true' },
    ],
  ])('%s is given up', async (_what, before, milliseconds, failure) => {
    const { runs, seen, start, settle } = await playedShell();
    start();
    await settle();
    const [run] = runs;
    if (run === undefined) throw new Error('nothing was started');
    before(run);
    vi.advanceTimersByTime(milliseconds - 2000);
    expect(run.ended).toEqual([]);
    vi.advanceTimersByTime(4000);
    expect(run.ended).toEqual(['kill']);
    await run.ends({ status: null });
    expect(seen.ends[0]?.failure).toMatchObject({ type: 'host-unreachable', phase: 'hello', ...failure });
  });

  test('a shell that cannot be started says why', async () => {
    const { seen, start, settle } = await playedShell();
    start(makeConnectionError('shell', 'no ssh here', 'install it'));
    await settle();
    expect(seen.ends[0]?.failure).toMatchObject({ cause: 'shell', detail: 'no ssh here', remedy: 'install it' });
  });

  test('the last four lines of ssh are quoted, and of each at most 400 characters', () => {
    expect(explained('@@@@\na\r\n\nb\n  c \nd\ne\n')).toBe('b\nc\nd\ne');
    expect(explained('x'.repeat(400))).toBe('x'.repeat(400));
    expect(explained('x'.repeat(401))).toBe(`${'x'.repeat(400)}…`);
    expect([explained('', 1), explained('', null), explained('gone', null)]).toEqual([
      'ssh ended with status 1 and said nothing',
      'ssh was killed',
      'gone',
    ]);
  });
});

const after =
  (...messages: readonly number[]) =>
  () => {
    const sequence = new StagingSequence();
    for (const message of messages) {
      if (message > 100) sequence.offer(message - 100);
      else sequence.receive(message);
    }
  };

describe('staging messages', () => {
  test('each comes once and in order, and a piece only when it was offered', () => {
    const { cached, unpacker, wanted, next, staged, failed } = StagingMessage;
    expect(after(cached, unpacker, 101, next, wanted, 102, next, next, staged, failed)).not.toThrow();
    expect(after(next)).toThrow('it asks for a piece of ncclrun that was not offered');
    expect(after(wanted, 101, next, next)).toThrow('that was not offered');
    expect(after(unpacker, 102, wanted, next)).toThrow('that was not offered');
    for (const wrong of [[cached, cached], [staged, wanted], [99], [failed, cached]])
      expect(after(...wrong)).toThrow(`staging message ${wrong.at(-1)} out of order`);
  });

  test('the numbers are those that hosts know', () => {
    expect({ StagingMessage, StagingRefusal, HUNG_STATUS }).toEqual({
      StagingMessage: { wanted: 1, next: 2, staged: 3, cached: 4, failed: 5, unpacker: 6, alive: 7, hung: 8 },
      StagingRefusal: { machine: 1, directory: 2, unpack: 3, hash: 4, start: 5, untrusted: 6 },
      HUNG_STATUS: 154,
    });
  });
});
