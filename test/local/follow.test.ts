/** `ncclrun logs` and `ncclrun attach`: real jobs, followed by others than who started them. */
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect } from 'node:net';
import { expect, it } from 'vitest';
import { jobNow, runningJobs } from '../../launcher/jobs/find.ts';
import { Command } from '../rig/command.ts';
import { type SteerableRank, Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

const open = (count: number, steering: Steering) =>
  Command.start(['-n', `${count}`, ...steering.options, steering.program]);

it('ncclrun logs shows what ranks have written, as the terminal of the job has it', async () => {
  await using steering = await Steering.open();
  await using job = open(2, steering);
  const ranks = await steering.ranks(2);
  for (const rank of ranks) {
    await rank.print(`out of ${rank.rank}\n`);
    await job.line('stdout', new RegExp(`out of ${rank.rank}`, 'u'));
    await rank.print(`error of ${rank.rank}\n`, 'stderr');
    await job.line('stderr', new RegExp(`error of ${rank.rank}`, 'u'));
  }
  const all = { stdout: '[0] out of 0\n[1] out of 1\n', stderr: '[0] error of 0\n[1] error of 1\n', status: 0 };
  expect(await Command.run(['logs', `${job.pid}`])).toMatchObject(all);
  const one = { stdout: '[1] out of 1\n', stderr: '[1] error of 1\n', status: 0 };
  expect(await Command.run(['logs', '--rank', '1', `${job.pid}`])).toMatchObject(one);
  await Promise.all(ranks.map((rank) => rank.exit(0)));
});

it('several readers follow a job to its end, and exit with its status and words', async () => {
  await using steering = await Steering.open();
  await using job = open(2, steering);
  const ranks = await steering.ranks(2);
  await ranks[1]?.print('early\n');
  await job.line('stdout', /early/u);
  const followers = [1, 2, 3].map(() => Command.start(['logs', '-f', `${job.pid}`]));
  for (const follower of followers) await follower.line('stdout', /^\[1\] early$/u);
  await ranks[1]?.print('late\n');
  for (const follower of followers) await follower.line('stdout', /^\[1\] late$/u);
  await ranks[1]?.exit(3);
  const { stderr } = await job.outcome;
  for (const follower of followers) {
    expect(await follower.outcome).toMatchObject({ status: 3, stdout: '[1] early\n[1] late\n', stderr });
  }
});

it('ncclrun attach shows output from then on, and ^C leaves the job as it is', async () => {
  await using steering = await Steering.open();
  await using job = open(1, steering);
  const rank = await steering.rank(0);
  await rank.print('before\n');
  await job.line('stdout', /before/u);
  await using first = Command.start(['attach', `${job.pid}`]);
  const line = await first.line('stderr', /attached/u);
  expect(line).toMatch(
    /^ncclrun: attached to job ([0-9a-f]+): \^C detaches, ncclrun stop \1 ends it, ncclrun logs \1 has earlier output; stdin is not passed on$/u,
  );
  await using second = Command.start(['attach', `${job.pid}`]);
  await second.line('stderr', /attached/u);
  await rank.print('after\n');
  await first.line('stdout', /^after$/u);
  first.signal('SIGINT');
  expect(await first.outcome).toMatchObject({ status: 130, stdout: 'after\n' });
  await rank.exit(0);
  expect(await second.outcome).toMatchObject({ status: 0, stdout: 'after\n' });
  expect((await job.outcome).status).toBe(0);
});

const ESCAPE = String.fromCodePoint(0x1b);

it.each([
  ['always', {}, false],
  ['never', { FORCE_COLOR: '1' }, true],
  ['never', { NCCLRUN_COLOR: 'always', NO_COLOR: '1' }, true],
  ['auto', { NCCLRUN_COLOR: 'never', FORCE_COLOR: '1' }, false],
] as const)(
  'the variables of a reader decide about its colors, not --color %s of the job: %j gives %s',
  async (choice, environment, expected) => {
    await using steering = await Steering.open();
    await using job = Command.start(['--color', choice, '-n', '2', ...steering.options, steering.program], {
      environment: { FORCE_COLOR: '0' },
    });
    const ranks = await steering.ranks(2);
    await ranks[0]?.print('early\n');
    await job.line('stdout', /early/u);
    await using follower = Command.start(['logs', '-f', `${job.pid}`], { environment });
    await follower.line('stdout', /early$/u);
    await ranks[1]?.exit(3);
    const { stdout, stderr } = await follower.outcome;
    expect([stdout, stderr].map((text) => text.includes(ESCAPE))).toEqual([expected, expected]);
    const ofJob = await job.outcome;
    expect([ofJob.stdout, ofJob.stderr].map((text) => text.includes(ESCAPE))).toEqual([
      choice === 'always',
      choice === 'always',
    ]);
  },
);

/** More than a launcher keeps for a reader. */
const PIECES = 16;
const piece = `${'x'.repeat(99)}\n`.repeat(10_000);

async function flood(rank: SteerableRank): Promise<void> {
  for (let count = 0; count < PIECES; count += 1) await rank.print(piece);
}

it('a reader that is stopped does not hold up the job, nor its end', async () => {
  await using steering = await Steering.open();
  await using job = open(1, steering);
  const rank = await steering.rank(0);
  await using follower = Command.start(['logs', '-f', `${job.pid}`]);
  await rank.print('first\n');
  await follower.line('stdout', /^first$/u);
  follower.signal('SIGSTOP');
  await flood(rank);
  await rank.exit(0);
  const { status, stdout } = await job.outcome;
  expect({ status, bytes: stdout.length }).toEqual({ status: 0, bytes: 'first\n'.length + PIECES * piece.length });
  follower.signal('SIGCONT');
  const after = await follower.outcome;
  expect(after.status).toBe(125);
  expect(after.stdout.length).toBeLessThan(stdout.length);
  expect(after.stderr).toMatch(/^ncclrun: job [0-9a-f]+ has ended, and its status is not known here$/mu);
});

it('a reader that goes on after a stop prints how much it has missed', async () => {
  await using steering = await Steering.open();
  await using job = open(1, steering);
  const rank = await steering.rank(0);
  await using follower = Command.start(['attach', `${job.pid}`]);
  await follower.line('stderr', /attached/u);
  follower.signal('SIGSTOP');
  await flood(rank);
  await rank.print('flooded\n');
  await job.line('stdout', /^flooded$/u);
  follower.signal('SIGCONT');
  const line = await follower.line('stderr', /left out/u);
  const missed = Number(
    /^ncclrun: ([0-9]+) bytes of output are left out here: this reader was too slow/u.exec(line)?.[1],
  );
  await rank.exit(4);
  const { status, stdout } = await follower.outcome;
  expect({ status, bytes: stdout.length + missed }).toEqual({
    status: 4,
    bytes: PIECES * piece.length + 'flooded\n'.length,
  });
});

/** Its id once it can be followed. */
function running(pid: number): string | null {
  return runningJobs().find((job) => job.pid === pid && job.output !== undefined)?.jobId ?? null;
}

it('a reader that is killed leaves nothing behind in the launcher', async () => {
  await using steering = await Steering.open();
  await using job = open(1, steering);
  const rank = await steering.rank(0);
  await until('the job can be followed', () => running(job.pid));
  const descriptors = () => readdirSync(`/proc/${job.pid}/fd`).length;
  const before = descriptors();
  const follower = Command.start(['attach', `${job.pid}`]);
  await follower.line('stderr', /attached/u);
  expect(descriptors()).toBe(before + 1);
  follower.signal('SIGKILL');
  await follower.outcome;
  await until('its descriptor is closed', () => descriptors() === before);
  await rank.exit(0);
  expect((await job.outcome).status).toBe(0);
});

it('nobody gets output without the key, which ncclrun ps does not print', async () => {
  await using steering = await Steering.open();
  await using job = open(1, steering);
  const rank = await steering.rank(0);
  const id = await until('the job can be followed', () => running(job.pid));
  const found = runningJobs().find(({ jobId }) => jobId === id);
  const { socket: name = '', key = '' } = (found === undefined ? null : jobNow(found))?.output ?? {};
  const terminal = { stdoutIsTerminal: false, stderrIsTerminal: false, columns: null, environment: {} };
  const answer = async (line: string): Promise<number> => {
    const socket = connect(`\0${name}`);
    let bytes = 0;
    socket.on('data', (piece) => (bytes += piece.length));
    socket.on('error', () => undefined);
    socket.write(`${line}\n`);
    await once(socket, 'close');
    return bytes;
  };
  const request = { key, follows: false, kept: true, ranks: null, ...terminal };
  expect(await answer(JSON.stringify(request))).toBeGreaterThan(0);
  expect(
    await answer(JSON.stringify({ ...request, key: key.replace(/^./u, (one) => (one === '0' ? '1' : '0')) })),
  ).toBe(0);
  expect(await answer(JSON.stringify({ ...request, key: '' }))).toBe(0);
  expect(await answer('what')).toBe(0);
  const silent = Array.from({ length: 100 }, () => connect(`\0${name}`).on('error', () => undefined));
  await Promise.all(silent.map((socket) => once(socket, 'connect')));
  expect(await answer(JSON.stringify(request))).toBeGreaterThan(0);
  for (const socket of silent) socket.destroy();
  expect((await Command.run(['ps', '--json'])).stdout).not.toContain(key);
  await rank.exit(0);
});

const ofEnded =
  '; the output of a job that has ended is where it went, and in the files of its --output if it has some';

it.each([
  ['logs', ofEnded],
  ['attach', ofEnded],
  ['stop', ''],
])('ncclrun %s names the jobs it does not find, and the one that was meant', async (command, more) => {
  expect(await Command.run([command, 'nobody'])).toMatchObject({
    status: 2,
    stderr: `ncclrun: no running job of yours on this machine is called "nobody"\n  next: ncclrun ps lists those that run${more}\n`,
  });
  await using steering = await Steering.open();
  await using job = open(1, steering);
  const rank = await steering.rank(0);
  const { jobId = '' } = runningJobs().find(({ pid }) => pid === job.pid) ?? {};
  const wrong = `${jobId.slice(0, -1)}x`;
  const { stderr } = await Command.run([command, wrong]);
  expect(stderr).toContain(`  next: did you mean ${jobId}? ncclrun ps lists those that run\n`);
  await rank.exit(0);
});

it.each([
  [['logs'], 'logs needs one job, and has 0'],
  [['attach', 'a', 'b'], 'attach needs one job, and has 2'],
])('ncclrun %j is refused', async (words, message) => {
  const { status, stderr } = await Command.run(words);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
});

it.each([
  ['x', '--rank is "x"'],
  ['2', '--rank names rank 2; job'],
])('ncclrun logs with --rank %s is refused', async (list, message) => {
  await using steering = await Steering.open();
  await using job = open(2, steering);
  const ranks = await steering.ranks(2);
  const { status, stderr } = await Command.run(['logs', '--rank', list, `${job.pid}`]);
  expect(status).toBe(2);
  expect(stderr).toContain(message);
  await Promise.all(ranks.map((rank) => rank.exit(0)));
});
