/** kill -9 of each of the processes that make up a job. */
import { setTimeout as delay } from 'node:timers/promises';
import { type Part, killHard, partsOn, rankOn } from '../../rig/faults.ts';
import { type Kind, type Scene, fine, hostLost, notJoined } from '../kind.ts';

/** Of a host's parts that are still to come the first is waited for. False: the job ended without it. */
async function kill({ host, command }: Scene, part: Part): Promise<boolean> {
  for (;;) {
    const found = partsOn(host, part);
    for (const { pid } of found) killHard(pid);
    if (found.length > 0) return true;
    if (command.process.exitCode !== null) return false;
    await delay(2);
  }
}

const killed = { status: 137, reason: null, names: 'nobody' } as const;
const rankKilled = { status: 137, reason: 'rank-signal', names: 'rank' } as const;

export const processKinds: readonly Kind[] = [
  {
    name: 'kill-launcher',
    class: 'ends',
    verdicts: {
      connecting: [killed],
      spawning: [killed],
      started: [killed],
      streaming: [killed],
      teardown: [killed, fine],
    },
    inject({ command }) {
      if (command.process.exitCode !== null) return Promise.resolve(false);
      killHard(command.pid);
      return Promise.resolve(true);
    },
  },
  {
    name: 'kill-agent',
    class: 'ends',
    verdicts: {
      connecting: [...notJoined, hostLost],
      spawning: [hostLost],
      started: [hostLost],
      streaming: [hostLost],
      teardown: [hostLost, fine],
    },
    inject: (scene) => kill(scene, 'agent'),
  },
  {
    name: 'kill-guardian',
    class: 'ends',
    verdicts: {
      connecting: [...notJoined, hostLost],
      spawning: [hostLost],
      started: [hostLost],
      streaming: [hostLost],
      teardown: [hostLost, fine],
    },
    inject: (scene) => kill(scene, 'guardian'),
  },
  {
    name: 'kill-sshd',
    class: 'ends',
    // A connection that breaks before the agent speaks is tried again.
    verdicts: {
      connecting: [...notJoined, hostLost, fine],
      spawning: [hostLost],
      started: [hostLost],
      streaming: [hostLost],
      teardown: [hostLost, fine],
    },
    inject: (scene) => kill(scene, 'sshd'),
  },
  {
    name: 'kill-rank',
    class: 'ends',
    verdicts: { started: [rankKilled], streaming: [rankKilled], teardown: [rankKilled, fine] },
    inject({ host, rank }) {
      const pid = rankOn(host, rank);
      if (pid !== null) killHard(pid);
      return Promise.resolve(pid !== null);
    },
  },
];
