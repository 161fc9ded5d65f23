/** srun's messages about failed tasks. */
import { thisMachine } from '../../allocation/grammar/machine.ts';
import { parseHostList } from '../../allocation/grammar/host-list.ts';
import { Reading } from '../../allocation/grammar/reading.ts';

/** `srun: error: h[1,3]: tasks 0,2: Exited with exit code 127` */
const ENDED_BADLY = /^srun: error: (\S+): tasks? \S+ Exited with exit code ([0-9]+)/;
/** Warning that srun prints on clusters without binding. */
const NOISE =
  /lacks support for cpu binding|^srun: (Terminating|First task exited|Job step aborted)|STEP \S+ ON \S+ CANCELLED/;

/** Without what has no meaning to those who did not call srun themselves. */
export function withoutNoise(stderr: string): string {
  return stderr
    .split('\n')
    .filter((line) => !NOISE.test(line))
    .join('\n');
}

/** The tasks' messages without srun's own. */
export function messagesOfTasks(stderr: string): string {
  return stderr
    .split('\n')
    .filter((line) => !line.startsWith('srun: '))
    .join('\n');
}

/** Status by host, of those whose task ended badly by itself; in the order of srun's messages. */
export function statusByHost(stderr: string): ReadonlyMap<string, number> {
  const statuses = new Map<string, number>();
  for (const line of stderr.split('\n')) {
    const [, hosts, status] = ENDED_BADLY.exec(line) ?? [];
    if (hosts === undefined) continue;
    for (const name of namesIn(hosts)) statuses.set(name, Number(status));
  }
  return statuses;
}

/**
 * The first host whose task ended badly, and those with the same status. Others ended later and otherwise: srun was ending the step by then, and a task
 * that it ends in its prolog has a status too.
 */
export function blamedHosts(statuses: ReadonlyMap<string, number>): ReadonlySet<string> {
  const [first] = statuses.values();
  return new Set([...statuses].filter(([, status]) => status === first).map(([name]) => name));
}

function namesIn(hosts: string): readonly string[] {
  try {
    return parseHostList(hosts, thisMachine, new Reading(), 'srun').flatMap((item) =>
      'name' in item ? item.name : [],
    );
  } catch {
    return []; // not a list after all
  }
}
