import { readFileSync, readdirSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import { Command } from '../../test/rig/command.ts';
import { residentBytes } from '../../test/rig/processes.ts';
import type { Figure } from '../figure.ts';

const WINDOW_SECONDS = 20;

/** Nanoseconds of processor time that all threads of a process have used. */
function processorNanoseconds(pid: number): number {
  const threads = readdirSync(`/proc/${pid}/task`);
  const used = threads.map((thread) =>
    Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]),
  );
  return used.reduce((sum, nanoseconds) => sum + nanoseconds, 0);
}

/** What a host pays for a job that does nothing. */
export const idleAgents: Figure = {
  name: 'idle-agents',
  title: 'agent and guardian of a host while the job does nothing',
  unavailable: clusterUnavailable,
  async *run() {
    await using cluster = await Cluster.start(2);
    const program = ['sh', '-c', 'echo there; exec sleep 100000'];
    await using command = Command.start(['--rsh', 'openssh', '-H', 'h1:1,h2:1', ...program], { cluster });
    await command.line('stdout', /there/);
    await delay(3000); // what the start left to do is not idling
    const ours = cluster
      .host('h1')
      .guests()
      .filter((entry) => !entry.argv.includes('sleep'));
    const total = (of: (pid: number) => number): number => ours.reduce((sum, entry) => sum + of(entry.pid), 0);
    const before = total(processorNanoseconds);
    await delay(WINDOW_SECONDS * 1000);
    const share = ((total(processorNanoseconds) - before) / (WINDOW_SECONDS * 1e9)) * 100;
    yield {
      what: 'memory',
      unit: 'MB',
      ours: total(residentBytes) / 1e6,
      peers: {},
      goal: { kind: 'at-most', bound: 70 },
    };
    yield { what: 'of a core', unit: '%', ours: share, peers: {}, goal: { kind: 'at-most', bound: 0.2 } };
  },
};
