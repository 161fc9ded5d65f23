import { describe, expect, test } from 'vitest';
import type { Failure } from '../../launcher/model/failure.ts';
import { exitStatus } from '../../launcher/model/failure-error.ts';
import { makePaint } from '../../launcher/text/colour.ts';
import { failureBlock } from '../../launcher/report/summary.ts';

const plain = makePaint(false, {});
const rank = { host: 'node1', rank: 2, pid: 4711 };
const xid = { host: 'node1', gpu: 3, address: '0000:1b:00.0', ranks: [2], pid: 4711, message: 'Ch 00000008' };
const spawn = { type: 'spawn', host: 'node1', rank: 0, program: './prog', errno: 'ENOENT', remedy: null } as const;
const unreachable = { type: 'host-unreachable', host: 'node1', phase: 'connect', remedy: 'try ssh node1' } as const;
const position = { source: 'hosts', line: 3, column: 13, text: 'node1 slots=four', length: 4 };

describe('the exit status and the message of every failure', () => {
  test.each<[Failure, number, string]>([
    [{ type: 'usage', message: 'm', remedy: 'r' }, 2, 'ncclrun: m\n  next: r\n'],
    [{ type: 'allocation', message: 'm', remedy: null }, 2, 'ncclrun: m\n'],
    [{ type: 'unrepeatable', message: 'm', remedy: 'r' }, 1, 'ncclrun: m\n  next: r\n'],
    [
      { type: 'hostfile', message: 'm', position, remedy: 'r' },
      2,
      'ncclrun: hosts:3:13: m\n    node1 slots=four\n                ~~~~\n  next: r\n',
    ],
    [{ type: 'hostfile', message: 'm', position: null, remedy: null }, 2, 'ncclrun: m\n'],
    [
      { ...unreachable, cause: 'authentication', detail: 'Permission denied (publickey).\n' },
      125,
      'ncclrun: cannot reach node1: it does not let us in (phase: connect)\n    | Permission denied (publickey).\n  next: try ssh node1\n',
    ],
    [
      { type: 'agent', host: 'node1', phase: 'hello', message: 'other version', remedy: null },
      125,
      'node1: other version (hello)',
    ],
    [
      { type: 'host-lost', host: 'node1', cause: 'silent', silentMs: 6400, detail: '' },
      125,
      'node1 is lost: nothing was heard of it for 6.4 s',
    ],
    [
      { type: 'host-lost', host: 'node1', cause: 'link-closed', silentMs: null, detail: 'x' },
      125,
      'its connection closed',
    ],
    [
      { type: 'host-lost', host: 'node1', cause: 'protocol', silentMs: null, detail: 'x' },
      125,
      'node1 was cut off: its agent sent what no agent sends',
    ],
    [
      { type: 'host-lost', host: 'node1', cause: 'launcher-silent', silentMs: 5100, detail: '' },
      125,
      'node1 ended its ranks: it had heard nothing of this launcher for 5.1 s',
    ],
    [
      { type: 'host-lost', host: 'node1', cause: 'guardian-died', silentMs: null, detail: '' },
      125,
      'the guardian of its ranks died',
    ],
    [
      { ...spawn, cause: 'not-found' },
      127,
      'cannot start ./prog on node1 for rank 0: there is no such program (ENOENT)',
    ],
    [{ ...spawn, cause: 'not-executable', errno: 'EACCES' }, 126, 'it is not executable (EACCES)'],
    [{ ...spawn, cause: 'working-directory' }, 125, 'its working directory cannot be entered (ENOENT)'],
    [{ ...spawn, cause: 'system', errno: 'EAGAIN' }, 125, 'cannot start ./prog on node1 for rank 0: EAGAIN'],
    [
      { type: 'rank-exit', ...rank, exitCode: 3, outOfMemory: false, stderrTail: [] },
      3,
      'rank 2 on node1 (pid 4711) exited with status 3',
    ],
    [
      {
        type: 'rank-signal',
        ...rank,
        gpu: { index: 3, address: '0000:1b:00.0' },
        signal: 'SIGABRT',
        outOfMemory: false,
        stderrTail: [],
        xids: [
          { ...xid, code: 45, secondsBefore: 0.2 },
          { ...xid, host: 'node7', ranks: [8, 11], code: 119, message: '', pid: null, secondsBefore: 0 },
        ],
      },
      134,
      'ncclrun: rank 2 on node1 (pid 4711, GPU 3 at 0000:1b:00.0) died of SIGABRT (aborted), status 134\n' +
        '    GPU 3 (0000:1b:00.0) reported Xid 45: Ch 00000008 (pid 4711), 0.2 s before\n' +
        '    node7: GPU 3 (0000:1b:00.0, ranks 8,11) reported Xid 119: the GPU’s own processor (GSP) does not answer\n' +
        '  next: Xid 119 of GPU 3 on node7: reset the GPU or restart the host; if it comes back, try another driver\n',
    ],
    [{ type: 'rank-exit', ...rank, exitCode: 139, outOfMemory: false, stderrTail: [] }, 139, 'died of signal 11'],
    [
      { type: 'rank-signal', ...rank, signal: 'SIGKILL', outOfMemory: false, stderrTail: [] },
      137,
      'died of SIGKILL (killed), status 137',
    ],
    [
      { type: 'rank-signal', ...rank, signal: 'SIGUSR1', outOfMemory: false, stderrTail: [] },
      138,
      'died of SIGUSR1, status 138',
    ],
    [
      {
        type: 'rank-missing',
        host: 'node1',
        rank: 2,
        message: 'rank 2 (node1) exited without joining',
        stderrTail: [],
      },
      125,
      'ncclrun: rank 2 (node1) exited without joining',
    ],
    [{ type: 'timeout', seconds: 1.5 }, 124, 'the job did not end within 1.5 s'],
    [
      {
        type: 'init-timeout',
        seconds: 20,
        what: 'communicator 1a2b3c4d',
        missing: ['rank 2 (node1)', 'rank 3 (node1)'],
        stderr: null,
      },
      124,
      'communicator 1a2b3c4d waited 20 s for rank 2 (node1), rank 3 (node1), and the job was ended',
    ],
    [{ type: 'interrupt', signal: 'SIGINT' }, 130, 'ended by SIGINT (interrupted)'],
    [{ type: 'interrupt', signal: 'SIGTERM' }, 143, 'ended by SIGTERM (terminated)'],
    [{ type: 'interrupt', signal: 'SIGHUP' }, 129, 'ended by SIGHUP'],
    [{ type: 'interrupt', signal: 'SIGPIPE' }, 141, ''],
    [{ type: 'output', message: 'no space' }, 125, 'cannot write the output: no space'],
    [{ type: 'system', message: 'm', remedy: 'r' }, 125, 'm'],
    [{ type: 'internal', message: 'm' }, 125, 'internal error: m'],
  ])('the failure %o has its exit status and message', (failure, status, text) => {
    expect(exitStatus(failure)).toBe(status);
    expect(failureBlock(failure, plain)).toContain(text);
  });
});

const squiggle = (text: string, column: number, length: number) => {
  const failure: Failure = {
    type: 'hostfile',
    message: 'm',
    position: { ...position, text, column, length },
    remedy: null,
  };
  return failureBlock(failure, plain).split('\n').slice(1, 3);
};

describe('the position in a file', () => {
  test('tabs keep the marker in its column', () => {
    expect(squiggle('\tnode1\tslots=x', 14, 1)).toEqual(['    \tnode1\tslots=x', '    \t     \t      ~']);
  });

  test('a long line is shortened around the position', () => {
    const [shown = '', marks = ''] = squiggle(`${'a'.repeat(500)}!${'b'.repeat(500)}`, 501, 1);
    expect(shown.length).toBeLessThan(130);
    expect(shown[marks.indexOf('~')]).toBe('!');
  });

  test('control characters appear as escapes, and the marker keeps its column', () => {
    expect(squiggle('\u001b[31mnode1 x', 12, 1)).toEqual([String.raw`    \x1b[31mnode1 x`, '                  ~']);
  });
});

test('failures have colours only if the terminal has them and NO_COLOR is not set', () => {
  const failure: Failure = { type: 'usage', message: 'm', remedy: 'r' };
  expect(failureBlock(failure, makePaint(true, {}))).toContain('\u001b[');
  expect(failureBlock(failure, makePaint(true, { NO_COLOR: '1' }))).not.toContain('\u001b');
});
