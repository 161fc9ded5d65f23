/** --on-failure shrink: the other ranks go on, and the job's end is theirs. */
import { expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

const shrink = (steering: Steering, ...options: readonly string[]): Command =>
  Command.start(['-n', '3', '--on-failure', 'shrink', ...options, ...steering.options, steering.program]);

it('the launcher reports the failed rank, and the job ends with 0 when the others do', async () => {
  await using steering = await Steering.open();
  await using command = shrink(steering, '--json');
  const [first, second, third] = await steering.ranks(3);
  await second?.exit(3);
  await command.line('stderr', /2 ranks go on without it/);
  await Promise.all([first?.exit(0), third?.exit(0)]);
  const { status, stdout, stderr } = await command.outcome;
  expect({ status, stderr }).toEqual({ status: 0, stderr: expect.stringMatching(/rank 1 on .* exited with status 3/) });
  const result = parseResult(stdout);
  expect(result).toMatchObject({ ok: true, reason: 'ok', failures: [{ type: 'rank-exit', rank: 1, exitCode: 3 }] });
  expect(result.ranks.map(({ exitCode, endedByUs }) => [exitCode, endedByUs])).toEqual([
    [0, false],
    [3, false],
    [0, false],
  ]);
});

it('the first failure determines the exit status when no rank is left', async () => {
  await using steering = await Steering.open();
  await using command = shrink(steering, '--json');
  const [first, second, third] = await steering.ranks(3);
  await second?.exit(7);
  await command.line('stderr', /2 ranks go on/);
  await third?.kill('SIGSEGV');
  await command.line('stderr', /1 rank goes on/);
  await first?.exit(1);
  const { status, stdout } = await command.outcome;
  expect(status).toBe(7);
  expect(parseResult(stdout).failures).toMatchObject([{ rank: 1 }, { rank: 2 }, { rank: 0 }]);
});

it('the timeout of --timeout still ends the job', async () => {
  await using steering = await Steering.open();
  await using command = shrink(steering, '--timeout', '2');
  const [, second] = await steering.ranks(3);
  await second?.exit(3);
  const { status, stderr } = await command.outcome;
  expect({ status, stderr }).toEqual({ status: 124, stderr: expect.stringMatching(/go on without it\n[^]*2 s/) });
});
