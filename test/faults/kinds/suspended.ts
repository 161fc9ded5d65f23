/** Faults while the job is stopped by ^Z: its leases hold although the launcher says nothing. */
import { alive, processEntry } from '../../rig/processes.ts';
import { killHard, partsOn } from '../../rig/faults.ts';
import { until } from '../../rig/until.ts';
import { type Kind, type Scene, hostLost } from '../kind.ts';

const STOP_MS = 10_000;
const launcherKilled = { status: 137, reason: null, names: 'nobody' } as const;

async function suspend({ command }: Scene): Promise<void> {
  command.signal('SIGTSTP');
  await until('the launcher is stopped', () => processEntry(command.pid)?.state === 'T', STOP_MS);
}

function killLauncher({ command }: Scene): boolean {
  if (!alive(command.pid)) return false;
  killHard(command.pid);
  return true;
}

/** `hit`: what befalls the host before the launcher is killed. */
function suspended(name: string, hit: (scene: Scene) => Promise<void>, rest: Partial<Kind> = {}): Kind {
  return {
    name,
    class: 'ends',
    verdicts: { started: [launcherKilled], streaming: [launcherKilled] },
    async inject(scene) {
      await suspend(scene);
      await hit(scene);
      return killLauncher(scene);
    },
    ...rest,
  };
}

export const suspendedKinds: readonly Kind[] = [
  suspended('suspended-kill-launcher', () => Promise.resolve()),
  suspended('suspended-cut-kill-launcher', ({ host }) => host.cut(), {
    silences: true,
    repair: ({ host }) => host.uncut(),
  }),
  suspended('suspended-drop-kill-launcher', ({ host }) => host.drop(), {
    silences: true,
    repair: ({ host }) => host.accept(),
  }),
  {
    name: 'suspended-kill-agent',
    class: 'is reported',
    verdicts: { streaming: [hostLost] },
    async inject(scene) {
      await suspend(scene);
      const [agent] = partsOn(scene.host, 'agent');
      if (agent === undefined) return false;
      killHard(agent.pid);
      await scene.host.empty(STOP_MS);
      scene.command.signal('SIGCONT');
      return true;
    },
  },
];
