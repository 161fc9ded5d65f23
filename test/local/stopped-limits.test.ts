/** The time that a job spends stopped (^Z) counts toward none of its limits. */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { processEntry } from '../rig/processes.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

const LIMIT_SECONDS = 4;

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-stopped-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** ^Z, longer than any of the limits, and `fg`. */
async function stopForLong(command: Command): Promise<void> {
  command.signal('SIGTSTP');
  await until('ncclrun stopped', () => processEntry(command.pid)?.state === 'T');
  await delay(LIMIT_SECONDS * 1000 + 200);
  command.signal('SIGCONT');
  await until('ncclrun goes on', () => processEntry(command.pid)?.state !== 'T');
}

it('suspended time does not count toward --timeout', async () => {
  await using steering = await Steering.open();
  const argv = ['--timeout', `${LIMIT_SECONDS}`, '-n', '1', ...steering.options, steering.program];
  await using command = Command.start(argv);
  const rank = await steering.rank(0);
  await stopForLong(command);
  await rank.print('still here\n');
  await rank.exit(7);
  expect((await command.outcome).status).toBe(7);
});

it('suspended time does not count toward --grace', async () => {
  await using steering = await Steering.open();
  const argv = ['--json', '--grace', `${LIMIT_SECONDS}`, '-n', '1', ...steering.options, steering.program];
  await using command = Command.start(argv);
  const rank = await steering.rank(0);
  await rank.tell({ do: 'ignore', signals: ['SIGTERM'] });
  command.signal('SIGTERM');
  await command.line('stderr', /the ranks got SIGTERM/);
  await stopForLong(command);
  await rank.print('still here\n');
  await rank.exit(7);
  const { ranks } = parseResult((await command.outcome).stdout);
  expect(ranks).toMatchObject([{ exitCode: 7, signal: null }]);
});

it('suspended time does not count toward --spawn-timeout', async () => {
  const [shell, called, go] = ['shell', 'called', 'go'].map((name) => join(directory, name));
  const script = `#!/bin/sh\n: >${called}\nuntil [ -e ${go} ]; do sleep 0.05; done\nshift\nexec sh -c "$*"\n`;
  writeFileSync(shell ?? '', script, { mode: 0o755 });
  const argv = ['--spawn-timeout', `${LIMIT_SECONDS}`, '--rsh', shell ?? '', '-H', 'elsewhere:1', 'sh', '-c', 'exit 7'];
  await using command = Command.start(argv);
  await until('the shell was called', () => existsSync(called ?? ''));
  await stopForLong(command);
  writeFileSync(go ?? '', '');
  expect((await command.outcome).status).toBe(7);
});

it('suspended time does not count toward --init-timeout', async () => {
  await using steering = await Steering.open();
  const argv = ['--init-timeout', `${LIMIT_SECONDS}`, '-n', '2', ...steering.options, steering.program];
  await using command = Command.start(argv);
  const [first, second] = await steering.ranks(2);
  const joined = first?.init();
  await delay(1200); // by then its agent has told the launcher; nothing says so
  await stopForLong(command);
  expect(await second?.init()).toMatch(/^1\/2 /);
  expect(await joined).toMatch(/^0\/2 /);
  await Promise.all([first?.exit(7), second?.exit(7)]);
  expect((await command.outcome).status).toBe(7);
});
