/** What ranks did last is in the report of a job that failed or hung, and ncclrun replay shows it. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { buildStandIn, ownKernels, standInEnvironment } from '../rig/stand-in.ts';
import { Steering } from '../rig/steering.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-recorder-'));
beforeAll(buildStandIn);
afterAll(() => rmSync(directory, { recursive: true }));

/** Three ranks that have ended an operation; the first and the last are in the next. */
async function oneDoesNotCome(steering: Steering) {
  const ranks = await steering.ranks(3);
  await Promise.all(ranks.map((rank) => rank.init()));
  await Promise.all(ranks.map((rank) => rank.allReduce(1)));
  const [first, second, third] = ranks;
  if (first === undefined || second === undefined || third === undefined) throw new Error('there are three');
  return { ranks, second, waiting: [first.allReduce(1, 2), third.allReduce(1, 2)] };
}

async function replayed(...words: readonly string[]): Promise<string> {
  const { status, stdout, stderr } = await Command.run(['replay', ...words]);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

it('replay names the rank that did not come when a hang ended the job', async () => {
  const report = join(directory, 'hang.json');
  await using steering = await Steering.open();
  const options = ['--on-hang', 'abort', '--hang-after', '0.5', '--report', report];
  await using command = Command.start([...options, '-n', '3', ...steering.options, steering.program]);
  const { waiting } = await oneDoesNotCome(steering);
  await Promise.allSettled(waiting);
  expect((await command.outcome).status).toBe(124);
  const text = await replayed(report);
  expect(text).toMatch(/^communicator [0-9a-f]{16}, 3 ranks, recorded by 0-2$/m);
  expect(text).toMatch(
    /^ {2}1 +allReduce \w+ sum +\d+ +0\.000000 +\+\d+\.\.\+\d+ +\+\d+\.\.\+\d+ +\+\d+\.\.\+\d+ +[012] +-$/m,
  );
  expect(text).toMatch(/^ {2}2 +allReduce \w+ sum +8 .* \+\d+\.\.(?:\+\d+ failed)? for [12] .*missing .* 1$/m);
  const own = await replayed(report, '--rank', '0', '--last', '1');
  expect(own).toMatch(/1 earlier operations are not shown/);
  expect(own).toMatch(/^ {2}2 +allReduce/m);
});

it('the operations of a rank that was killed are in the report', async () => {
  const report = join(directory, 'killed.json');
  await using steering = await Steering.open();
  await using command = Command.start(['--report', report, '-n', '3', ...steering.options, steering.program]);
  const { ranks, second, waiting } = await oneDoesNotCome(steering);
  process.kill(second.pid, 'SIGKILL');
  await Promise.allSettled(waiting);
  for (const rank of ranks) if (rank !== second) void rank.exit(0);
  expect((await command.outcome).status).toBe(137);
  const text = await replayed(report);
  expect(text).toMatch(/recorded by 0-2$/m);
  expect(text).toMatch(/^ {2}2 +allReduce .* missing .* 1$/m);
  const trace = join(directory, 'trace.json');
  expect(await replayed(report, '--perfetto', trace)).toMatch(/^wrote .*trace\.json: open it/);
  const { traceEvents } = JSON.parse(readFileSync(trace, 'utf8'));
  const named = traceEvents
    .filter(({ ph }: { ph: string }) => ph === 'M')
    .map(({ args }: { args: { name: string } }) => args.name);
  expect(named).toEqual(['localhost', 'rank 0', 'rank 1', 'rank 2']);
  const slices = traceEvents.filter(({ ph }: { ph: string }) => ph === 'X').map(({ tid }: { tid: number }) => tid);
  expect(slices.toSorted()).toEqual([0, 0, 1, 2, 2]);
});

it('dump writes what the ranks of a running job have recorded, and the job goes on', async () => {
  const file = join(directory, 'now.json');
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '3', ...steering.options, steering.program]);
  const { ranks, second, waiting } = await oneDoesNotCome(steering);
  const dumped = await Command.run(['dump', `${command.pid}`, '-o', file]);
  expect(dumped).toMatchObject({ status: 0, stdout: `wrote ${file}: ncclrun replay ${file} shows it\n` });
  expect(await replayed(file)).toMatch(/^ {2}2 +allReduce .* missing .* 1$/m);
  expect(await second.allReduce(1, 2)).toEqual([3, 6]);
  await Promise.all(waiting);
  await Promise.all(ranks.map((rank) => rank.tell({ do: 'close' })));
  for (const rank of ranks) void rank.exit(0);
  expect((await command.outcome).status).toBe(0);
});

it('calls of ranks on GPUs are in the report of a job that timed out', async () => {
  const report = join(directory, 'gpu.json');
  const options = ['--device', 'cuda', '-b', '8', '-e', '8', '--iters', '1000000', '--timeout', '3'];
  const environment = { ...standInEnvironment, ...ownKernels };
  const words = ['perf', 'all_reduce', '-n', '2', ...options, '--report', report];
  expect(await Command.run(words, { environment })).toMatchObject({ status: 124 });
  const text = await replayed(report, '--last', '2');
  expect(text).toMatch(/^on GPUs only calls are recorded/m);
  expect(text).toMatch(/^ {2}\d+ +allReduce float32 sum +8 .* \+\d+ called /m);
});

it.each([
  [['replay'], 'replay needs one file, and has 0'],
  [['replay', '/nowhere.json'], '/nowhere.json cannot be read'],
  [['replay', join(import.meta.dirname, '../../package.json')], 'cannot be read'],
  [['dump', 'nosuchjob'], 'no running job of yours on this machine is called "nosuchjob"'],
])('the launcher refuses %s with a sentence', async (words, sentence) => {
  const { status, stderr } = await Command.run(words);
  expect(status).toBe(2);
  expect(stderr).toContain(sentence);
});
