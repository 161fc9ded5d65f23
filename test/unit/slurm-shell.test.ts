/** Agents of a Slurm job, started by an srun that the test plays: who calls, what waits, and whom a failure blames. */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { call } from '../../control/link/call.ts';
import type { Invitation } from '../../control/link/secret.ts';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { FRAME_HEADER_BYTES, FrameKind } from '../../control/messages/frame.ts';
import type { ConnectionProgress } from '../../launcher/remote/shell/connection.ts';
import { AGENT_START } from '../../launcher/remote/shell/shell.ts';
import { SlurmShell } from '../../launcher/remote/slurm/slurm.ts';
import { messagesOfTasks, statusByHost, withoutNoise } from '../../launcher/remote/slurm/srun-error.ts';
import { lacksAgent, refusalOf } from '../../launcher/remote/slurm/tasks.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { turn } from '../rig/scripted-host.ts';
import { until } from '../rig/until.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-slurm-shell-'));
afterAll(() => rmSync(root, { recursive: true }));

/** Writes down its words and its stdin, and ends as it reads from the pipe `go`. */
const srun = `#!/bin/sh
run=$(mktemp -d "$NCCLRUN_TEST_SRUN/run.XXXXXX")
mkfifo "$run/go"
printf '%s\\n' "$@" >"$run/draft"
mv "$run/draft" "$run/words"
exec 3<&0
cat <&3 >"$run/stdin" &
read -r status words <"$run/go"
printf '%s' "$words" | tr '|' '\\n' >&2
kill $! 2>/dev/null
exit "$status"
`;

let directory = root;
const closers: (() => void)[] = [];
beforeEach(() => {
  directory = mkdtempSync(join(root, 'test-'));
  writeFileSync(join(directory, 'srun'), srun, { mode: 0o755 });
  vi.stubEnv('PATH', `${directory}:${process.env['PATH']}`);
  vi.stubEnv('NCCLRUN_TEST_SRUN', directory);
  vi.stubEnv('SLURM_JOB_ID', '77');
});
afterEach(() => {
  for (const close of closers.splice(0)) close();
  vi.unstubAllEnvs();
});

const runs = () =>
  readdirSync(directory)
    .filter((name) => name.startsWith('run.'))
    .map((name) => join(directory, name));

/** The run of srun that is the only one. */
const begun = () =>
  until(
    'srun runs',
    () => runs().find((run) => existsSync(join(run, 'words')) && readFileSync(join(run, 'words')).length > 0) ?? null,
  );

async function invitation(run: string): Promise<Invitation> {
  const bytes = await until('the invitation has come', () => {
    const found = existsSync(join(run, 'stdin')) ? readFileSync(join(run, 'stdin')) : Buffer.alloc(0);
    return found.length > FRAME_HEADER_BYTES && found.length >= FRAME_HEADER_BYTES + found.readUInt32LE(0)
      ? found
      : null;
  });
  const { addresses: _, ...rest }: Invitation = JSON.parse(
    bytes.subarray(FRAME_HEADER_BYTES, FRAME_HEADER_BYTES + bytes.readUInt32LE(0)).toString(),
  );
  return { ...rest, addresses: ['127.0.0.1'] };
}

function progress() {
  const steps: string[] = [];
  const making: ConnectionProgress = {
    step: (step) => void steps.push(step),
    remoteShell: () => undefined,
    staging: () => undefined,
  };
  return { steps, making };
}

const [a, b] = [hostNamed('a'), hostNamed('b')];

/** Starts the agents of these hosts. */
async function started(shell: SlurmShell, hosts = [a, b]) {
  const all = hosts.map((host) => ({ host, ...progress() }));
  const processes = await Promise.all(all.map(({ host, making }) => shell.start(host, 'agent', making)));
  const news = processes.map(({ link }) => {
    const seen = { frames: new Array<FrameKind>(), closed: new Array<string | null>() };
    link.open({
      frame: ({ kind }) => void seen.frames.push(kind),
      closed: (problem) => void seen.closed.push(problem),
    });
    return seen;
  });
  return { processes, news, steps: all.map(({ steps }) => steps) };
}

async function caller(invited: Invitation, name: string) {
  const socket = await call(invited, name, { limitMs: 10_000 });
  closers.push(() => socket.destroy());
  const received: Buffer[] = [];
  socket.on('data', (bytes: Buffer) => received.push(bytes));
  return { socket, bytes: () => Buffer.concat(received).length };
}

describe('the agents of a Slurm job', () => {
  it('one srun starts all of them, and what they are sent waits until all have called', async () => {
    const { processes, news, steps } = await started(new SlurmShell([a, b], null));
    const run = await begun();
    expect(readFileSync(join(run, 'words'), 'utf8').split('\n').slice(0, 4)).toEqual([
      '--overlap',
      '--nodes=2',
      '--ntasks=2',
      '--ntasks-per-node=1',
    ]);
    expect(readFileSync(join(run, 'words'), 'utf8')).toContain('\n--nodelist=a,b\n');
    expect(readFileSync(join(run, 'words'), 'utf8')).toContain('\n--kill-on-bad-exit=1\n');
    const invited = await invitation(run);
    expect(invited).toMatchObject({ jobId: '77', schemaVersion: 1 });
    processes[0]?.link.send(makeFrame(FrameKind.heartbeat));
    const first = await caller(invited, 'a');
    await until('the call is known', () => steps[0]?.includes(AGENT_START) === true);
    expect([steps, first.bytes()]).toEqual([[['srun', AGENT_START], ['srun']], 0]);
    const second = await caller(invited, 'b');
    await until('what waited has come', () => first.bytes() === FRAME_HEADER_BYTES);
    expect([steps[1], second.bytes()]).toEqual([['srun', AGENT_START], 0]);
    second.socket.write(encodeFrame(makeFrame(FrameKind.hello)));
    await until('the frame has come', () => news[1]?.frames.length === 1);
    expect(news.map(({ frames }) => frames)).toEqual([[], [FrameKind.hello]]);
    first.socket.end();
    second.socket.end();
    await writeFile(join(run, 'go'), '0\n');
    expect(await Promise.all(processes.map(({ exit }) => exit))).toEqual([
      { status: 0, stderr: '' },
      { status: 0, stderr: '' },
    ]);
    expect(news.map(({ closed }) => closed.length)).toEqual([1, 1]);
  });

  it('a task that ends badly is blamed first, and the others end like srun', async () => {
    const { processes } = await started(new SlurmShell([a, b], null));
    const order: string[] = [];
    const exits = Promise.all(
      processes.map(({ exit }, index) => exit.then((end) => (order.push(index === 0 ? 'a' : 'b'), end))),
    );
    const run = await begun();
    await writeFile(
      join(run, 'go'),
      '5 srun: Terminating|agent: no disk|srun: error: b: task 1: Exited with exit code 3|\n',
    );
    const stderr = 'agent: no disk\nsrun: error: b: task 1: Exited with exit code 3\n';
    expect(await exits).toEqual([
      { status: 5, stderr },
      { status: 3, stderr },
    ]);
    expect(order).toEqual(['b', 'a']);
  });

  it('hosts that lack ncclrun are blamed, and not the one whose prolog srun ended because of them', async () => {
    const hosts = [a, b, hostNamed('c')];
    const { processes } = await started(new SlurmShell(hosts, null), hosts);
    const order: string[] = [];
    const exits = processes.map(({ exit }, index) => exit.then(() => void order.push(hosts[index]?.name ?? '')));
    const run = await begun();
    const words = [
      'srun: error: c: task 2: Exited with exit code 127',
      'slurmstepd-a: error: slurm task_prolog did not exit normally.',
      'srun: error: a: task 0: Exited with exit code 1',
      'srun: error: b: task 1: Exited with exit code 127',
    ];
    await writeFile(join(run, 'go'), `127 ${words.join('|')}|\n`);
    await Promise.all(exits);
    expect(order).toEqual(['b', 'c', 'a']);
  });

  it.each([
    ['1 \n', 'srun ended with status 1 without a message'],
    ['1 no such partition|\n', 'no such partition'],
  ])('an srun that ends with "%s" is the problem of all', async (go, detail) => {
    const { processes } = await started(new SlurmShell([a, b], null));
    await writeFile(join(await begun(), 'go'), go);
    for (const { problem } of await Promise.all(processes.map(({ exit }) => exit)))
      expect(problem).toEqual({
        cause: 'shell',
        detail,
        remedy: 'try: srun --overlap --nodes=1 --ntasks=1 --nodelist=a hostname',
        transient: false,
      });
  });

  it('a host beyond the allocation, and one whose agent was started before, get steps of their own', async () => {
    const shell = new SlurmShell([a], null);
    const { processes } = await started(shell, [a]);
    const others = await Promise.all([
      shell.start(hostNamed('spare'), 'agent', progress().making),
      shell.start(a, 'agent', progress().making),
    ]);
    await until('three steps run', () => runs().length === 3 && runs().every((run) => existsSync(join(run, 'words'))));
    const lists = runs().map((run) => /--nodelist=(.*)/u.exec(readFileSync(join(run, 'words'), 'utf8'))?.[1] ?? '');
    expect(lists.toSorted()).toEqual(['a', 'a', 'spare']);
    await Promise.all(runs().map((run) => writeFile(join(run, 'go'), '1 x|\n')));
    await Promise.all([...processes, ...others].map(({ exit }) => exit));
  });

  it('the end of all links ends srun', async () => {
    const { processes } = await started(new SlurmShell([a, b], null));
    const run = await begun();
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    for (const one of processes) one.kill();
    await turn();
    vi.advanceTimersByTime(1999);
    await turn();
    let ended = false;
    const exits = Promise.all(processes.map(({ exit }) => exit)).finally(() => (ended = true));
    await turn();
    expect([ended, existsSync(join(run, 'words'))]).toEqual([false, true]);
    vi.advanceTimersByTime(1);
    expect(await exits).toEqual([
      { status: 0, stderr: '' },
      { status: 0, stderr: '' },
    ]);
    vi.useRealTimers();
  });

  it('other attempts change nothing', () => {
    expect(new SlurmShell([a], null).isTransient()).toBe(false);
  });
});

describe("srun's messages", () => {
  const stderr = [
    'srun: error: h[1,3]: tasks 0,2: Exited with exit code 127',
    'srun: error: x: task 4: Exited with exit code 9',
    'srun: error: [: task 5: Exited with exit code 1',
    'srun: First task exited 60s ago',
    'slurmstepd: error: *** STEP 7.0 ON x CANCELLED AT',
    'agent: hello',
  ].join('\n');

  it('the status of each host is that of its task', () => {
    expect([...statusByHost(stderr)]).toEqual([
      ['h1', 127],
      ['h3', 127],
      ['x', 9],
    ]);
  });

  it('what has no meaning to users is left out', () => {
    expect(withoutNoise(stderr).split('\n').length).toBe(4);
    expect(messagesOfTasks(stderr)).toBe('slurmstepd: error: *** STEP 7.0 ON x CANCELLED AT\nagent: hello');
  });

  it('a status tells of a missing agent, or why there is no copy', () => {
    expect([125, 126, 127, 128].map(lacksAgent)).toEqual([false, true, true, false]);
    expect([1, 200, 201, 206].map(refusalOf)).toEqual([null, null, 1, 6]);
  });
});
