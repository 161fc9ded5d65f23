/** Two faults at once, of the launcher, of a host's agent, guardian and warden, and of the host itself: one is left to end the ranks. */
import { setTimeout as delay } from 'node:timers/promises';
import { partsOn, type Part } from '../../rig/faults.ts';
import { fine, hostLost, type Kind, type Scene, type Verdict } from '../kind.ts';

type Who = 'launcher' | Exclude<Part, 'sshd' | 'rank'>;
type Action = readonly [who: Who, signal: 'SIGKILL' | 'SIGSTOP'];

const launcherKilled: Verdict = { status: 137, reason: null, names: 'nobody' };
/** At most between the one and the other, in milliseconds. */
const APART_MS = 5;

function pidOf({ host, command }: Scene, who: Who): number | null {
  if (who === 'launcher') return command.process.exitCode === null ? command.pid : null;
  return partsOn(host, who)[0]?.pid ?? null;
}

/** Waits for those that are still to come. Null: the job ended without one of them. */
async function pidsOf(scene: Scene, actions: readonly Action[]): Promise<readonly number[] | null> {
  for (;;) {
    const found = actions.map(([who]) => pidOf(scene, who));
    if (found.every((pid) => pid !== null)) return found;
    if (scene.command.process.exitCode !== null) return null;
    await delay(2);
  }
}

async function strike(scene: Scene, actions: readonly Action[]): Promise<boolean> {
  const pids = await pidsOf(scene, actions);
  if (pids === null) return false;
  for (const [index, [, signal]] of actions.entries()) {
    if (index > 0 && scene.random(2) === 0) await delay(scene.random(APART_MS));
    try {
      process.kill(pids[index] ?? 0, signal);
    } catch {
      return index > 0; // it has ended, perhaps because of the first
    }
  }
  return true;
}

/** `name`: what is done to whom, in this order. */
function pair(name: string, ...actions: readonly Action[]): Kind {
  const launcher = actions.findIndex(([who, signal]) => who === 'launcher' && signal === 'SIGKILL');
  // A launcher that is killed last may have heard of the first fault and ended just before.
  const verdicts = launcher === -1 ? [hostLost] : launcher === 0 ? [launcherKilled] : [launcherKilled, hostLost];
  return {
    name,
    class: 'ends',
    verdicts: { spawning: verdicts, started: verdicts, streaming: verdicts, teardown: [...verdicts, fine] },
    inject: (scene) => strike(scene, actions),
  };
}

/** The host is hit, and the launcher killed: nobody is left to tell. */
function hostAndLauncher(name: string, hit: (scene: Scene) => Promise<void>, rest: Partial<Kind>): Kind {
  return {
    name,
    class: 'ends',
    verdicts: {
      connecting: [launcherKilled],
      spawning: [launcherKilled],
      started: [launcherKilled],
      streaming: [launcherKilled],
    },
    silences: true,
    async inject(scene) {
      await hit(scene);
      if (scene.command.process.exitCode !== null) return false;
      process.kill(scene.command.pid, 'SIGKILL');
      return true;
    },
    ...rest,
  };
}

/** The host is hit, and a process on it killed. */
function hostAndPart(
  name: string,
  part: 'agent' | 'guardian',
  hit: (scene: Scene) => Promise<void>,
  rest: Partial<Kind>,
): Kind {
  return {
    name,
    class: 'ends',
    verdicts: { spawning: [hostLost], started: [hostLost], streaming: [hostLost] },
    silences: true,
    async inject(scene) {
      await hit(scene);
      return strike(scene, [[part, 'SIGKILL']]);
    },
    ...rest,
  };
}

const cut = ({ host }: Scene): Promise<void> => host.cut();
const uncut: Partial<Kind> = { repair: ({ host }) => host.uncut() };
const freeze = ({ host }: Scene): Promise<void> => host.freeze();
const thaw: Partial<Kind> = { lift: ({ host }) => host.thaw() };

export const pairKinds: readonly Kind[] = [
  pair('kill-warden', ['warden', 'SIGKILL']),
  pair('kill-guardian-and-agent', ['guardian', 'SIGKILL'], ['agent', 'SIGKILL']),
  pair('kill-warden-and-agent', ['warden', 'SIGKILL'], ['agent', 'SIGKILL']),
  pair('kill-warden-and-guardian', ['warden', 'SIGKILL'], ['guardian', 'SIGKILL']),
  pair('kill-guardian-and-launcher', ['guardian', 'SIGKILL'], ['launcher', 'SIGKILL']),
  pair('kill-agent-and-launcher', ['agent', 'SIGKILL'], ['launcher', 'SIGKILL']),
  pair('kill-launcher-and-warden', ['launcher', 'SIGKILL'], ['warden', 'SIGKILL']),
  pair('stop-guardian-kill-launcher', ['guardian', 'SIGSTOP'], ['launcher', 'SIGKILL']),
  pair('stop-guardian-kill-agent', ['guardian', 'SIGSTOP'], ['agent', 'SIGKILL']),
  pair('stop-guardian-kill-warden', ['guardian', 'SIGSTOP'], ['warden', 'SIGKILL']),
  pair('stop-agent-kill-launcher', ['agent', 'SIGSTOP'], ['launcher', 'SIGKILL']),
  pair('stop-agent-kill-guardian', ['agent', 'SIGSTOP'], ['guardian', 'SIGKILL']),
  pair('stop-agent-kill-warden', ['agent', 'SIGSTOP'], ['warden', 'SIGKILL']),
  pair('stop-warden-kill-guardian', ['warden', 'SIGSTOP'], ['guardian', 'SIGKILL']),
  pair('stop-agent-and-guardian', ['agent', 'SIGSTOP'], ['guardian', 'SIGSTOP']),
  pair('stop-warden-kill-agent', ['warden', 'SIGSTOP'], ['agent', 'SIGKILL']),
  pair('stop-warden-kill-launcher', ['warden', 'SIGSTOP'], ['launcher', 'SIGKILL']),
  hostAndLauncher('cut-kill-launcher', cut, uncut),
  hostAndLauncher('freeze-kill-launcher', freeze, thaw),
  hostAndPart('cut-kill-guardian', 'guardian', cut, uncut),
  hostAndPart('cut-kill-agent', 'agent', cut, uncut),
];
