/** Waits until a job is where a fault is to strike it. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { until } from '../rig/until.ts';
import type { Moment, Scene } from './kind.ts';

/** How much later than its first sign the fault comes, at most, in milliseconds: about as long as such a moment lasts. */
const lasts: Readonly<Record<Moment, number>> = {
  connecting: 250,
  spawning: 10,
  started: 60,
  streaming: 400,
  teardown: 100,
};

/** Rejects if the job ends before. */
export async function reach(moment: Moment, scene: Scene): Promise<void> {
  const { command, host, rank } = scene;
  switch (moment) {
    case 'connecting':
      await command.line('stderr', new RegExp(`^ncclrun: ${host.name}: connecting`));
      break;
    case 'spawning':
      await command.line('stderr', /^ncclrun: phase: spawn/);
      break;
    case 'started':
      await command.line('stderr', new RegExp(`^ncclrun: rank ${rank} on ${host.name}: started`));
      break;
    case 'streaming':
      await streams(scene);
      break;
    case 'teardown':
      await streams(scene);
      scene.enough();
      await command.line('stderr', /^ncclrun: rank \d+ on \S+: ended/);
      break;
    default:
      moment satisfies never;
  }
  await delay(scene.random(lasts[moment]));
}

/** Collectives have been going through. */
export async function streams({ command, directory }: Scene): Promise<void> {
  await until(
    'the stream flows',
    () => existsSync(join(directory, 'streaming-0')) || command.process.exitCode !== null,
    30_000,
  );
  if (command.process.exitCode !== null) throw new Error('the job ended before its ranks had joined');
}
