/** Which ssh reaches a host: our own where it will do, else the system's, if there is one. */
import { describe, expect, test } from 'vitest';
import { AutoShell } from '../../launcher/remote/auto.ts';
import type { Answer } from '../../launcher/remote/ssh-config/configuration.ts';
import type { ConnectionProblem } from '../../launcher/remote/shell/connection-error.ts';
import type { Route } from '../../launcher/remote/ssh2/route.ts';
import { hostNamed } from '../rig/host-slots.ts';

const link = { open: () => undefined, send: () => undefined, flush: () => undefined, close: () => undefined };

/** Who starts the command on a host with this obstacle, where ssh says this of hosts in general. */
async function started(obstacle: Route['obstacle'], general: Partial<Answer>) {
  const said: string[] = [];
  const process = (name: string) => {
    said.push(name);
    return { link, exit: Promise.resolve({ status: 0, stderr: '' }), kill: () => undefined, letGo: () => undefined };
  };
  const shell = new AutoShell(
    {
      route: async () => ({ hops: [], obstacle, orders: { kex: false, ciphers: false, macs: false } }),
      go: (_route, command) => process(`ours runs ${command}`),
    },
    {
      start: async ({ name }, command) => process(`ssh runs ${command} on ${name}`),
      commandLine: ({ name }, command) => [name, command],
      trial: ({ name }, verbose) => `ssh ${verbose ? '-v ' : ''}${name}`,
    },
    { general: Promise.resolve({ settings: new Map(), files: [], error: null, ...general }) },
  );
  await shell.start(hostNamed('a'), 'true', {
    step: () => undefined,
    staging: () => undefined,
    remoteShell: (reason) => void said.push(reason),
  });
  return { said, shell };
}

const settings = new Map([['hostname', ['a']]]);
const obstacle = { what: 'of its ProxyCommand', hard: true };
const ours = ['ours runs true'];
const systems = ["the system's ssh is used, since of its ProxyCommand", 'ssh runs true on a'];

test.each<[string, Route['obstacle'], Partial<Answer>, string[]]>([
  ['nothing is in the way', null, { settings }, ours],
  ['something is in the way', obstacle, { settings }, systems],
  ['something is in the way, and ssh reports a mistake', obstacle, { error: 'Bad configuration option' }, systems],
  ['something is in the way, and there is no ssh', obstacle, {}, ours],
])('the expected ssh starts the command where %s', async (_, inTheWay, general, expected) => {
  expect((await started(inTheWay, general)).said).toEqual(expected);
});

const problem = (transient: boolean): ConnectionProblem => ({ cause: 'other', detail: '', remedy: null, transient });

describe('a host that was not reached', () => {
  test.each<[string, string, ConnectionProblem | undefined, boolean]>([
    ['our own problem', '', problem(true), true],
    ['our own problem that stays', 'Connection reset by peer', problem(false), false],
    ['what ssh says', 'kex_exchange_identification: Connection closed by remote host', undefined, true],
    ['what ssh says', 'Permission denied (publickey).', undefined, false],
  ])('is tried again by %s: %j', async (_, stderr, found, again) => {
    const { shell } = await started(null, {});
    expect(shell.isTransient({ status: 255, stderr, ...(found === undefined ? {} : { problem: found }) })).toBe(again);
  });

  test('the words for a person and for another host are those of ssh', async () => {
    const { shell } = await started(null, {});
    expect([shell.trial(hostNamed('a'), true), shell.commandLine(hostNamed('a'), 'c')]).toEqual([
      'ssh -v a',
      ['a', 'c'],
    ]);
  });
});
