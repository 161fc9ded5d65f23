/** What does not end by itself, or does not heed being told to: it must be reported. */
import { killHard, partsOn, rankOn } from '../../rig/faults.ts';
import { fine, hostLost, type Kind, type Scene } from '../kind.ts';

const HANG_SECONDS = 5;
/** A lease, in which the last sign of life is judged, and the ranks' end. */
const LEFT_ALONE_MS = 10_000;
const killed = { status: 137, reason: 'rank-signal', names: 'rank' } as const;
const hung = { status: 124, reason: 'hang', names: 'rank' } as const;

function stopRank({ host, rank }: Scene): Promise<boolean> {
  return signalRank({ host, rank }, 'SIGSTOP');
}

function signalRank({ host, rank }: Pick<Scene, 'host' | 'rank'>, signal: NodeJS.Signals): Promise<boolean> {
  const pid = rankOn(host, rank);
  if (pid !== null) process.kill(pid, signal);
  return Promise.resolve(pid !== null);
}

function signalPart({ host }: Scene, part: 'agent' | 'warden' | 'guardian', signal: NodeJS.Signals): boolean {
  const [found] = partsOn(host, part);
  if (found !== undefined) process.kill(found.pid, signal);
  return found !== undefined;
}

export const stoppedKinds: readonly Kind[] = [
  {
    name: 'ranks-ignore-term',
    class: 'is reported',
    verdicts: { streaming: [killed] },
    options: () => ['--grace', '2'],
    action: { ranks: 'all', what: 'stay' },
    inject({ host, rank }) {
      const pid = rankOn(host, rank);
      if (pid !== null) killHard(pid);
      return Promise.resolve(pid !== null);
    },
    check(_outcome, result, { rank }) {
      const others = result?.ranks.filter((one) => one.rank !== rank) ?? [];
      const told = others.every(({ signal, endedByUs }) => signal === 'SIGKILL' && endedByUs);
      return told ? null : `the result does not say that the others were killed: ${JSON.stringify(others)}`;
    },
  },
  {
    name: 'rank-stopped-abort',
    class: 'is reported',
    verdicts: { streaming: [hung] },
    options: () => ['--hang-after', String(HANG_SECONDS), '--on-hang', 'abort'],
    inject: stopRank,
  },
  {
    name: 'rank-stopped-report',
    class: 'is reported',
    verdicts: { streaming: [fine] },
    options: () => ['--hang-after', '1'],
    inject: stopRank,
    async after(scene) {
      const { command, host, rank } = scene;
      const line = await command.line('stderr', /^ncclrun: .*, without progress/);
      await signalRank(scene, 'SIGCONT');
      if (!line.includes(`rank ${rank} on ${host.name} `)) throw new Error(`another one is named: ${line}`);
      scene.enough();
    },
  },
  {
    name: 'launcher-stopped',
    class: 'is reported',
    verdicts: { streaming: [{ ...hostLost, names: 'anybody' }] },
    inject({ command }) {
      command.signal('SIGSTOP');
      return Promise.resolve(true);
    },
    async after({ cluster, command }) {
      for (const host of cluster.hosts) await host.empty(LEFT_ALONE_MS);
      command.signal('SIGCONT');
    },
    check(_outcome, result) {
      const [first] = result?.failures ?? [];
      if (first?.type === 'host-lost' && first.cause === 'launcher-silent') return null;
      return `the launcher is not to blame: ${JSON.stringify(first)}`;
    },
  },
  {
    name: 'agent-stopped',
    class: 'ends',
    verdicts: { spawning: [hostLost], started: [hostLost], streaming: [hostLost] },
    inject: (scene) => Promise.resolve(signalPart(scene, 'agent', 'SIGSTOP')),
  },
  {
    name: 'guardian-stopped',
    class: 'ends',
    verdicts: { spawning: [hostLost], started: [hostLost], streaming: [hostLost] },
    inject: (scene) => Promise.resolve(signalPart(scene, 'guardian', 'SIGSTOP')),
  },
  {
    name: 'warden-stopped',
    class: 'goes on',
    verdicts: { spawning: [fine], started: [fine], streaming: [fine] },
    inject: (scene) => Promise.resolve(signalPart(scene, 'warden', 'SIGSTOP')),
  },
];
