/** Ranks that hang in an operation: who keeps them waiting is said, without any code in the program. */
import { setTimeout as delay } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';

const after = ['--hang-after', '0.5'];

/** Three ranks that have ended one operation; the first and the last are in the next. */
async function hang(steering: Steering) {
  const ranks = await steering.ranks(3);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.allReduce(1)));
  const [first, second, third] = ranks;
  if (first === undefined || second === undefined || third === undefined) throw new Error('there are three');
  return { second, third, waiting: [first.allReduce(1, 2), third.allReduce(1, 2)], all: ranks };
}

it('the hang report names the missing rank, and the job continues when it arrives', async () => {
  await using steering = await Steering.open();
  await using command = Command.start([...after, '-n', '3', ...steering.options, steering.program]);
  const { second, waiting, all } = await hang(steering);
  const line = await command.line('stderr', /without progress/);
  expect(line).toMatch(
    /: ranks 0,2 wait in operation 2 \(allReduce of 8 bytes\) of communicator [0-9a-f]{16}, without progress for [\d.]+ s$/,
  );
  expect(line).toContain(
    `rank 1 on localhost (pid ${second.pid}) has begun none since operation 1 (allReduce), which it has ended`,
  );
  expect(line).toMatch(/which it has ended(?:, asleep in \w+)?: ranks/);
  expect(await second.allReduce(1, 2)).toEqual([3, 6]);
  await Promise.all(waiting);
  await Promise.all(all.map((rank) => rank.tell({ do: 'close' })));
  for (const rank of all) void rank.exit(0);
  const { status, stderr } = await command.outcome;
  expect({ status, lines: stderr.match(/without progress/g)?.length }).toEqual({ status: 0, lines: 1 });
});

it('the hang report names a rank whose process is stopped', async () => {
  await using steering = await Steering.open();
  await using command = Command.start([...after, '-n', '3', ...steering.options, steering.program]);
  const { second, waiting } = await hang(steering);
  process.kill(second.pid, 'SIGSTOP');
  expect(await command.line('stderr', /without progress/)).toContain(
    `rank 1 on localhost (pid ${second.pid}) is stopped (SIGSTOP, or a debugger): ranks 0,2 wait`,
  );
  process.kill(second.pid, 'SIGKILL');
  await Promise.allSettled(waiting);
});

it('--on-hang abort ends the job with 124', async () => {
  await using steering = await Steering.open();
  const options = ['--json', '--on-hang', 'abort', ...after];
  await using command = Command.start([...options, '-n', '3', ...steering.options, steering.program]);
  const { waiting } = await hang(steering);
  await Promise.allSettled(waiting);
  const { status, stdout, stderr } = await command.outcome;
  expect(status).toBe(124);
  expect(stderr).toMatch(/^ncclrun: rank 1 on localhost .* without progress .*; the job was ended/m);
  expect(stderr.match(/without progress/gu)).toHaveLength(1);
  expect(parseResult(stdout)).toMatchObject({
    reason: 'hang',
    failures: [
      {
        type: 'hang',
        operation: 2,
        waiting: '0,2',
        verdict: {
          kind: 'stuck-outside',
          confidence: 'likely',
          blamed: [{ ranks: '1', host: 'localhost', where: 'outside', last: { number: 1, collective: 'allReduce' } }],
          operation: { number: 2, collective: 'allReduce', count: 2, type: 'float32', operator: 'sum' },
          classes: [
            { ranks: '0,2', where: 'inside' },
            { ranks: '1', where: 'outside' },
          ],
        },
      },
    ],
  });
});

it('the hang report names the cycle of a deadlock across two communicators', async () => {
  await using steering = await Steering.open();
  const options = ['--json', '--on-hang', 'abort', ...after];
  await using command = Command.start([...options, '-n', '2', ...steering.options, steering.program]);
  const ranks = await steering.ranks(2);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.tell({ do: 'split' })));
  const waiting = ranks.map((rank) =>
    rank.rank === 0 ? rank.allReduce(1) : rank.tell({ do: 'allReduceInSplit', values: [1] }),
  );
  await Promise.allSettled(waiting);
  const { status, stdout, stderr } = await command.outcome;
  expect(status).toBe(124);
  const cycle = (rank: number) =>
    `rank ${rank} on localhost (pid ${ranks[rank]?.pid}) waits in operation 1 (allReduce) of`;
  expect(stderr).toContain(`ncclrun: the ranks wait for each other: ${cycle(0)} communicator`);
  expect(stderr).toContain(`; ${cycle(1)} communicator`);
  expect(parseResult(stdout).failures).toMatchObject([
    {
      type: 'hang',
      verdict: {
        kind: 'deadlock',
        confidence: 'likely',
        chain: [
          { from: 0, to: 1 },
          { from: 1, to: 0 },
        ],
      },
    },
  ]);
});

it('the hang report blames the rank that makes one call too many', async () => {
  await using steering = await Steering.open();
  await using command = Command.start([...after, '-n', '4', ...steering.options, steering.program]);
  const ranks = await steering.ranks(4);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.allReduce(1)));
  const extra = ranks[2]?.allReduce(1);
  const line = await command.line('stderr', /without progress/);
  expect(line).toContain(
    `rank 2 on localhost (pid ${ranks[2]?.pid}) has begun operation 2 (allReduce), which none of the 3 other ranks has`,
  );
  expect(line).toMatch(/ \(suspected\)$/);
  const others = ranks.filter(({ rank }) => rank !== 2);
  expect(await Promise.all([extra, ...others.map((rank) => rank.allReduce(1))])).toEqual([[4], [4], [4], [4]]);
  await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
  for (const rank of ranks) void rank.exit(0);
  expect((await command.outcome).status).toBe(0);
});

it('--on-hang ignore suppresses the hang report', async () => {
  await using steering = await Steering.open();
  await using command = Command.start([
    ...after,
    '--on-hang',
    'ignore',
    '-n',
    '3',
    ...steering.options,
    steering.program,
  ]);
  const { second, waiting, all } = await hang(steering);
  await delay(1000); // twice as long as it would take
  await second.allReduce(1, 2);
  await Promise.all(waiting);
  await Promise.all(all.map((rank) => rank.tell({ do: 'close' })));
  for (const rank of all) void rank.exit(0);
  expect(await command.outcome).toMatchObject({ status: 0, stderr: '' });
});
