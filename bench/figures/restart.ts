import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { median, runCommand } from '../measure.ts';
import { launchOver } from './over_ssh.ts';

const HOSTS = 4;
const MAX_MS = 1000;
/** Its last rank writes down when it kills itself, once all run; in the next attempt all end. The others obey TERM. */
const script = (killedFile: string): string => `[ $TORCHELASTIC_RESTART_COUNT = 0 ] || exit 0
[ $RANK = $((WORLD_SIZE - 1)) ] || exec sleep 1000
sleep 1; date +%s%3N > ${killedFile}; kill -9 $$`;

/** From a rank's death on one of four hosts to the start of the last rank of the next attempt, by the clock that all of them share. */
export const restart: Figure = {
  name: 'restart',
  title: 'a rank on 4 hosts is killed, the others obey TERM: until all ranks of the next attempt run',
  unavailable: clusterUnavailable,
  async *run({ samples }) {
    await using cluster = await Cluster.start(HOSTS);
    const directory = await mkdtemp('/var/tmp/ncclrun-bench-');
    const [eventsFile, killedFile] = [join(directory, 'events.jsonl'), join(directory, 'killed')];
    try {
      for (const rsh of ['openssh', 'ssh2'])
        for (const perHost of [1, 4, 8]) {
          const argv = [...launchOver(rsh, cluster, perHost), '--max-restarts', '1', '--events', eventsFile];
          const times: (number | null)[] = [];
          for (let sample = 0; sample < samples; sample++) {
            const { status } = await runCommand([...argv, 'sh', '-c', script(killedFile)], { cluster });
            const killed = Number(await readFile(killedFile, 'utf8'));
            times.push(status === 0 ? runningAgain(await readFile(eventsFile, 'utf8')) - killed : null);
          }
          const goal = { kind: 'at-most', bound: MAX_MS } as const;
          yield { what: `${HOSTS} × ${perHost}, ${rsh}`, unit: 'ms', ours: median(times), peers: {}, goal };
        }
    } finally {
      await rm(directory, { recursive: true });
    }
  },
};

/** When all ranks ran for the second time: milliseconds since 1970; Infinity if that did not come. */
function runningAgain(lines: string): number {
  const events: unknown[] = lines
    .trim()
    .split('\n')
    .map((text) => JSON.parse(text));
  return events.flatMap(timeOfRun)[1] ?? Infinity;
}

function timeOfRun(event: unknown): number[] {
  const isRun =
    typeof event === 'object' && event !== null && 'phase' in event && event.phase === 'run' && 'time' in event;
  return isRun ? [Number(event.time)] : [];
}
