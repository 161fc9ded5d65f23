/** The process's side of the watchdog that ends it if it does not come up, over real pipes. */
import { mkdtempSync, openSync, readSync, rmSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { Watchdog } from '../../worker/agent/watchdog.ts';
import { isOpen, pipe } from '../rig/pipe.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-watchdog-'));
afterAll(() => rmSync(directory, { recursive: true }));
afterEach(() => {
  vi.unstubAllEnvs();
  vi.restoreAllMocks();
});

test('the process takes the token before it speaks, once', () => {
  const [token, disarm] = [pipe(directory), pipe(directory)];
  vi.stubEnv('NCCLRUN_WATCHDOG', `${token.mine} ${disarm.mine}`);
  const watchdog = Watchdog.ofThisProcess();
  expect(process.env['NCCLRUN_WATCHDOG']).toBeUndefined();
  writeSync(token.its, 'tt');
  watchdog.speak();
  watchdog.speak();
  expect([isOpen(token.mine), isOpen(disarm.mine)]).toEqual([false, true]);
  expect(readSync(token.its, Buffer.alloc(8))).toBe(1); // the other one
});

test('a watchdog that keeps the token delays the process by a second at most', () => {
  const [token, disarm] = [pipe(directory), pipe(directory)];
  vi.stubEnv('NCCLRUN_WATCHDOG', `${token.mine} ${disarm.mine}`);
  const watchdog = Watchdog.ofThisProcess();
  const time = vi.spyOn(process, 'hrtime');
  let seconds = 100;
  time.mockImplementation(() => [(seconds += 0.25), 0]);
  watchdog.speak();
  expect([isOpen(token.mine), seconds]).toEqual([false, 101.25]);
});

test('a process that is up says so once, whether the watchdog is there or not', () => {
  const [token, disarm] = [pipe(directory), pipe(directory)];
  vi.stubEnv('NCCLRUN_WATCHDOG', `${token.mine} ${disarm.mine}`);
  const watchdog = Watchdog.ofThisProcess();
  watchdog.disarm();
  watchdog.disarm();
  const seen = Buffer.alloc(8);
  expect([readSync(disarm.its, seen), seen.toString('latin1', 0, 1), isOpen(disarm.mine)]).toEqual([1, '.', false]);
  const readOnly = openSync('/dev/null', 'r');
  vi.stubEnv('NCCLRUN_WATCHDOG', `${token.mine} ${readOnly}`);
  Watchdog.ofThisProcess().disarm();
  expect(isOpen(readOnly)).toBe(false);
});

test.each(['', '3', 'x 4', '3 4 5'])('a process without a watchdog has nothing to do (%j)', (variable) => {
  vi.stubEnv('NCCLRUN_WATCHDOG', variable);
  const watchdog = Watchdog.ofThisProcess();
  watchdog.speak();
  watchdog.disarm();
  expect(process.env['NCCLRUN_WATCHDOG']).toBeUndefined();
});
