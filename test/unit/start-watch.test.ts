/** How the launcher judges a start: by progress, phase by phase. */
import { expect, it } from 'vitest';
import { describeStall, StartWatch, type StartStall, type StartWatchOptions } from '../../control/link/start-watch.ts';

const LONG = 1e6;

/** A watch on a quick clock, and what it says in the end. */
function watch(options: Partial<StartWatchOptions>): {
  readonly start: StartWatch;
  readonly stall: Promise<StartStall>;
} {
  const { promise, resolve } = Promise.withResolvers<StartStall>();
  const usual = { heartbeatMs: 20, leaseMs: LONG, connectMs: LONG, loginMs: LONG, advanceMs: LONG };
  const start = new StartWatch({ ...usual, stoppedProcess: () => null, onStall: resolve, ...options });
  return { start, stall: withProcess(promise) };
}

/** The watch itself keeps no process running. */
async function withProcess<T>(promise: Promise<T>): Promise<T> {
  const running = setInterval(() => {}, 1000);
  return promise.finally(() => clearInterval(running));
}

it('the watch gives up a connection that is not made', async () => {
  const { stall } = watch({ connectMs: 60 });
  expect(await stall).toMatchObject({ type: 'silent', phase: 'connecting' });
});

it('the watch gives up a login shell that does not run our command', async () => {
  const { start, stall } = watch({ loginMs: 60 });
  start.login();
  expect(await stall).toMatchObject({ type: 'silent', phase: 'login' });
});

it('the watch gives up a host that becomes silent after its first message', async () => {
  const { start, stall } = watch({ leaseMs: 60, loginMs: 1 });
  start.login();
  start.received(true);
  expect(await stall).toMatchObject({ type: 'silent', phase: 'starting' });
});

it('the watch gives up a host that only sends signs of life', async () => {
  const { start, stall } = watch({ leaseMs: 200, advanceMs: 500 });
  const signs = setInterval(() => start.received(false), 20);
  expect(await stall).toMatchObject({ type: 'silent', phase: 'starting' });
  clearInterval(signs);
});

it('the watch names a stopped process on this side', async () => {
  const { stall } = watch({ leaseMs: 60, stoppedProcess: () => 4711 });
  const found = await stall;
  expect(found).toMatchObject({ type: 'stopped', pid: 4711 });
  expect(describeStall(found)).toContain('process 4711');
});
