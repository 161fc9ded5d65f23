/** What our own ssh makes of the errors of sockets and of ssh2, and a link whose streams come later. */
import { describe, expect, test } from 'vitest';
import { makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { authenticationProblem, connectProblem, droppedProblem } from '../../launcher/remote/ssh2/errors.ts';
import { LateLink } from '../../launcher/remote/ssh2/late-link.ts';
import { hopSettings } from '../../launcher/remote/ssh2/settings.ts';

const answer = { settings: new Map([['hostname', ['x']]]), files: [], error: null };
const hop = hopSettings({ name: 'h', user: 'ann', port: null }, answer);

const error = (code: string) => Object.assign(new Error(`${code} it is`), { code });

const offer = (name: string) => ({ name, method: () => expect.unreachable() });

const detail = (offers: string[], partial = false) =>
  authenticationProblem(
    hop,
    ['publickey', 'password'],
    { offers: offers.map(offer), leftOut: ['k is encrypted'] },
    partial,
  ).problem.detail;

describe('what sockets and ssh2 report', () => {
  test.each<[Error, 'connecting' | 'handshake' | 'authentication' | 'ready', string, string]>([
    [error('ENOTFOUND'), 'connecting', 'unknown-host', 'could not resolve hostname x'],
    [error('EAI_AGAIN'), 'connecting', 'unknown-host', 'could not resolve hostname x'],
    [error('ECONNREFUSED'), 'connecting', 'refused', 'connect to x port 22: connection refused'],
    [error('EHOSTUNREACH'), 'connecting', 'no-route', 'connect to x port 22: no route to host'],
    [error('ETIMEDOUT'), 'connecting', 'timeout', 'connect to x port 22: timed out'],
    [error('ETIMEDOUT'), 'ready', 'timeout', 'x port 22 is connected, but does not answer'],
    [error('ECONNRESET'), 'handshake', 'other', 'x port 22 closed the connection at its start: ECONNRESET it is'],
    [
      error('ECONNRESET'),
      'authentication',
      'authentication',
      'x ended the connection instead of letting us in: ECONNRESET it is',
    ],
    [error('ECONNRESET'), 'ready', 'other', 'connect to x port 22: ECONNRESET it is'],
    [new Error('odd'), 'connecting', 'other', 'connect to x port 22: odd'],
  ])('%s while %s has the cause %s', (thrown, progress, cause, detail) => {
    expect(connectProblem(hop, thrown, progress).problem).toMatchObject({
      cause,
      detail,
      transient: progress === 'handshake',
    });
  });

  test('a connection that closes without a word is another attempt’s matter before the login', () => {
    expect(droppedProblem(hop, 'handshake', null).problem).toMatchObject({
      detail: 'x port 22 closed the connection at its start',
      transient: true,
    });
    expect(droppedProblem(hop, 'authentication', null).problem).toMatchObject({
      detail: 'x ended the connection instead of letting us in',
      transient: false,
    });
  });

  test('a login that is denied names what was offered', () => {
    const denied = 'ann@x: Permission denied (publickey,password):';
    expect([detail([]), detail(['a', 'b']), detail(['a'], true)]).toEqual([
      `${denied} there was no key to offer\nk is encrypted`,
      `${denied} offered a, b\nk is encrypted`,
      `${denied} a key is not enough there\nk is encrypted`,
    ]);
  });
});

const remedy = (methods: string[], user = 'ann') =>
  authenticationProblem(
    hopSettings({ name: 'h', user, port: null }, answer),
    methods,
    { offers: [], leftOut: [] },
    false,
  ).problem.remedy;

describe('what to do about a login that is denied', () => {
  test('a host that wants more than a key is reached by a connection made by hand', () => {
    expect(remedy(['password', 'keyboard-interactive'])).toMatch(
      /^ann@h takes no key alone, and wants password or keyboard-interactive, .*ControlMaster/u,
    );
    expect(remedy(['publickey', 'password'])).toMatch(/^this must work without a password/u);
    expect(remedy(['hostbased'])).toMatch(/^this must work without a password/u);
  });

  test('an agent with many keys is the reason where the host has enough of them', () => {
    const { problem } = droppedProblem(hop, 'authentication', 'Too many authentication failures');
    expect(problem.remedy).toContain('Host h, IdentityFile KEY, IdentitiesOnly yes');
  });

  test('root may be the reason', () => {
    expect(remedy(['publickey'], 'root')).toContain('PermitRootLogin');
    expect(remedy(['publickey'])).not.toContain('PermitRootLogin');
  });
});

const rig = () => {
  const calls: string[] = [];
  const link = {
    open: () => void calls.push('open'),
    send: ({ kind }: { kind: FrameKind }) => void calls.push(`send ${kind}`),
    flush: () => void calls.push('flush'),
    close: () => void calls.push('close'),
  };
  const late = new LateLink();
  const closed: (string | null)[] = [];
  const handler = { frame: () => undefined, closed: (problem: string | null) => void closed.push(problem) };
  return { late, link, calls, closed, handler };
};

describe('a link whose streams come later', () => {
  const [start, end] = [makeFrame(FrameKind.start), makeFrame(FrameKind.end)];

  test('what is sent until then waits, and is sent once', () => {
    const { late, link, calls, handler } = rig();
    late.open(handler);
    late.send(start);
    late.flush();
    late.attach(link);
    late.send(end);
    late.flush();
    late.abandon();
    late.close();
    expect(calls).toEqual(['open', `send ${start.kind}`, `send ${end.kind}`, 'flush', 'close']);
  });

  test('a link that is closed before its streams come accepts nothing more, and closes them', () => {
    const { late, link, calls, handler } = rig();
    late.send(start);
    late.close();
    late.send(end);
    late.attach(link);
    late.open(handler);
    expect(calls).toEqual([`send ${start.kind}`, 'close', 'open']);
  });

  test('a link whose streams never come is closed once', () => {
    const { late, link, calls, closed, handler } = rig();
    late.open(handler);
    late.send(start);
    late.abandon();
    late.abandon();
    late.send(end);
    expect(closed).toEqual([null]);
    late.attach(link);
    expect(calls).toEqual(['close']);
  });
});
