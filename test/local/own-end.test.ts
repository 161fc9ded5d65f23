/** A process that nobody watches any more, and that somebody stops: the kernel ends it. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { expect, onTestFinished, test } from 'vitest';

const module = (path: string): string => JSON.stringify(new URL(`../../worker/${path}`, import.meta.url).href);
const LEASE_MS = 500;

/** A process that does what `script` says with the functions of worker/agent/own-end.ts, and goes on. */
async function started(script: string) {
  const program = `
    import { loadNative } from ${module('engine/load.ts')};
    import { endIfStopped, stayIfStopped } from ${module('agent/own-end.ts')};
    const native = loadNative();
    ${script};
    setInterval(() => undefined, 1000);
    console.log('there');`;
  const child = spawn(process.execPath, ['--input-type=module', '--eval', program], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child.stdout, 'data');
  return child;
}

test('an agent that has ended its ranks is killed when it is stopped, and not while it runs', async () => {
  const child = await started(
    `endIfStopped(native, ${LEASE_MS}); setTimeout(() => console.log('alive'), 4 * ${LEASE_MS})`,
  );
  const [said] = await once(child.stdout, 'data');
  expect(String(said)).toBe('alive\n'); // after longer than the timer has
  const ended = once(child, 'exit');
  child.kill('SIGSTOP');
  expect(await ended).toEqual([null, 'SIGKILL']);
});

test('an agent that has a guardian again, or no lease, is not killed', async () => {
  const watched = await started(`endIfStopped(native, 0); endIfStopped(native, ${LEASE_MS}); stayIfStopped(native)`);
  const other = await started(`endIfStopped(native, ${LEASE_MS})`);
  const ended = once(other, 'exit');
  watched.kill('SIGSTOP');
  other.kill('SIGSTOP');
  expect(await ended).toEqual([null, 'SIGKILL']);
  const goesOn = once(watched, 'exit');
  watched.kill('SIGTERM'); // heeded when it goes on
  watched.kill('SIGCONT');
  expect(await goesOn).toEqual([null, 'SIGTERM']);
});
