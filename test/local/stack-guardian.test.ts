/** The guardian reads stacks of real processes: programs of C, stopped and stuck ones, and those that it may not read. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { constants, tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { encodeFrame, makeFrame } from '../../control/messages/codec.ts';
import { ALL_RANKS, FrameKind } from '../../control/messages/frame.ts';
import { decodeReadStack, encodeStackOrder, type ReadStack, StackProblem } from '../../control/messages/stack.ts';
import { describeIf } from '../rig/capability.ts';
import { compile } from '../rig/compile.ts';
import { until } from '../rig/until.ts';
import { GuardianDriver, rankOf } from './guardian-driver.ts';

const CALLS = ['innermost', 'middle', 'outermost', 'main'];

let directory = '';
let program = '';
let requests = 0;

beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'ncclrun-stack-'));
  chmodSync(directory, 0o755);
  program = await compile('test/rig/programs/call-tree.c', directory);
});

afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** The stack of a rank; `pid`: of another process than its own. */
async function read(guardian: GuardianDriver, rank: number, pid = guardian.pid(rank)): Promise<ReadStack> {
  const request = ++requests;
  const answers = () => guardian.of(FrameKind.readStack).filter((frame) => frame.request === request);
  guardian.send(FrameKind.readStack, { request, payload: encodeStackOrder(3000, [{ rank, pid }]) });
  await guardian.until(() => answers().some(({ subject }) => subject === ALL_RANKS));
  const [answer] = answers();
  if (answer === undefined || answer.subject !== rank) throw new Error('no stack came');
  return decodeReadStack(answer.payload);
}

async function started(guardian: GuardianDriver, ...argv: string[]): Promise<void> {
  guardian.start([rankOf(0, ...argv)]);
  await guardian.until(() => guardian.output(0).includes('ready'));
}

const functions = ({ threads }: ReadStack, thread = 0): string[] =>
  threads[thread]?.native.map((frame) => frame.function) ?? [];

const state = (pid: number): string => readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.[0] ?? '';

it('the stack of a sleeping program has its functions, and the program goes on', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program);
  await until('it sleeps', () => state(guardian.pid(0)) === 'S');
  const stack = await read(guardian, 0);
  expect(stack).toMatchObject({ problem: StackProblem.none, pid: guardian.pid(0), omittedThreads: 0 });
  const names = functions(stack);
  expect(names.slice(names.indexOf('waitHere'))).toEqual(expect.arrayContaining(['waitHere', ...CALLS]));
  expect(names.filter((name) => CALLS.includes(name))).toEqual(CALLS);
  expect(stack.threads[0]?.native.find((frame) => frame.function === 'main')?.module).toBe(program);
  await until('it sleeps on', () => state(guardian.pid(0)) === 'S');
  expect(functions(await read(guardian, 0))).toEqual(names);
});

it('the stack of a program that computes has its functions', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program, 'spin');
  expect(functions(await read(guardian, 0)).filter((name) => CALLS.includes(name))).toEqual(CALLS);
  expect(state(guardian.pid(0))).toBe('R');
});

it('the stack in a signal handler leads to the functions that the signal interrupted', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program, 'handler');
  const names = functions(await read(guardian, 0)).filter((name) => [...CALLS, 'onSignal', 'waitHere'].includes(name));
  expect(names).toEqual(['waitHere', 'onSignal', ...CALLS]);
});

it('every thread has its stack and its name', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program, 'thread');
  await until('it waits for its thread', () => state(guardian.pid(0)) === 'S');
  const stack = await read(guardian, 0);
  expect(stack.threads.map(({ thread }) => thread)[0]).toBe(guardian.pid(0));
  expect(stack.threads.map(({ name }) => name)).toEqual(['call-tree', 'second']);
  expect(functions(stack, 0)).toEqual(expect.arrayContaining(CALLS));
  expect(functions(stack, 1)).toEqual(expect.arrayContaining(['waitHere', 'secondThread']));
});

it('a stripped program has frames without names', async () => {
  const stripped = join(directory, 'stripped');
  copyFileSync(program, stripped);
  execFileSync('strip', [stripped]);
  await using guardian = new GuardianDriver();
  await started(guardian, stripped);
  const { threads } = await read(guardian, 0);
  const own = threads[0]?.native.filter(({ module }) => module === stripped) ?? [];
  expect(own.length).toBeGreaterThanOrEqual(5);
  expect(own.map((frame) => frame.function).filter((name) => name !== '' && name !== '_start')).toEqual([]);
});

it('a stopped program is read and stays stopped', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program);
  const pid = guardian.pid(0);
  process.kill(pid, 'SIGSTOP');
  await until('it is stopped', () => state(pid) === 'T');
  expect(functions(await read(guardian, 0))).toEqual(expect.arrayContaining(CALLS));
  await until('it is stopped', () => state(pid) === 'T');
  process.kill(pid, 'SIGCONT');
  await until('it sleeps', () => state(pid) === 'S');
});

it('a program in uninterruptible sleep is not touched', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program, 'vfork');
  await until('it waits for its child', () => state(guardian.pid(0)) === 'D');
  expect(await read(guardian, 0)).toMatchObject({ problem: StackProblem.uninterruptible, threads: [] });
  expect(readFileSync(`/proc/${guardian.pid(0)}/status`, 'latin1')).toContain('TracerPid:\t0\n');
});

it('a program under a debugger is not read, and its debugger is named', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program);
  const tracer = spawn(program, ['trace', String(guardian.pid(0))], { stdio: ['ignore', 'pipe', 'ignore'] });
  try {
    await once(tracer.stdout, 'data');
    expect(await read(guardian, 0)).toMatchObject({ problem: StackProblem.traced, detail: tracer.pid });
  } finally {
    tracer.kill('SIGKILL');
    await once(tracer, 'exit');
  }
});

it('a process that does not descend from the guardian is not read', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program);
  expect(await read(guardian, 0, process.pid)).toMatchObject({ problem: StackProblem.notOurs });
});

describeIf(process.getuid?.() === 0 ? null : 'needs root', 'for a plain user', () => {
  const NOBODY = 65_534;

  it('the guardian reads its ranks', async () => {
    await using guardian = new GuardianDriver([], NOBODY);
    await started(guardian, program);
    expect(functions(await read(guardian, 0))).toEqual(expect.arrayContaining(CALLS));
  });

  it('the guardian does not read a rank that has raised its privileges', async () => {
    const raised = join(directory, 'raised');
    copyFileSync(program, raised);
    chmodSync(raised, 0o4755);
    await using guardian = new GuardianDriver([], NOBODY);
    await started(guardian, raised);
    expect(await read(guardian, 0)).toMatchObject({
      problem: StackProblem.notPermitted,
      detail: constants.errno.EACCES,
    });
    execFileSync('kill', ['-KILL', String(guardian.pid(0))]);
  });
});

it('a process that has ended is reported as such', async () => {
  await using guardian = new GuardianDriver();
  guardian.start([rankOf(0, '/bin/true')]);
  await guardian.allExited(1);
  expect(await read(guardian, 0)).toMatchObject({ problem: StackProblem.gone });
});

it('a rank that is killed while others are read ends as it would', async () => {
  await using guardian = new GuardianDriver();
  guardian.start([rankOf(0, program), rankOf(1, program)]);
  await guardian.until(() => guardian.output(0).includes('ready') && guardian.output(1).includes('ready'));
  const targets = Array.from({ length: 200 }, (_, index) => ({ rank: index % 2, pid: guardian.pid(index % 2) }));
  guardian.send(FrameKind.readStack, { request: 4711, payload: encodeStackOrder(3000, targets) });
  await guardian.until(() => guardian.of(FrameKind.readStack).length > 2);
  process.kill(guardian.pid(0), 'SIGKILL');
  await guardian.until(() => guardian.exit(0) !== null);
  expect(guardian.exit(0)?.signalNumber).toBe(9);
  await guardian.until(() => guardian.of(FrameKind.readStack).some(({ subject }) => subject === ALL_RANKS));
  await until('the other one sleeps on', () => state(guardian.pid(1)) === 'S');
});

it('a second order for stacks at the same time is answered without any', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program);
  const payload = encodeStackOrder(3000, [{ rank: 0, pid: guardian.pid(0) }]);
  const orders = [5001, 5002].map((request) => encodeFrame(makeFrame(FrameKind.readStack, { request, payload })));
  // In one piece, so that the second one is there before the first one is answered.
  guardian.raw(Buffer.concat(orders));
  const of = (request: number) => guardian.of(FrameKind.readStack).filter((frame) => frame.request === request);
  await guardian.until(() => [5001, 5002].every((one) => of(one).some(({ subject }) => subject === ALL_RANKS)));
  expect([of(5001).length, of(5002).length]).toEqual([2, 1]);
});

it('the guardian ends for an order for stacks that makes no sense', async () => {
  await using guardian = new GuardianDriver();
  await started(guardian, program);
  guardian.send(FrameKind.readStack, { payload: Buffer.from([1, 2, 3]) });
  await guardian.until(() => guardian.outcome !== null);
  expect(guardian.stderr).toContain('makes no sense');
});
