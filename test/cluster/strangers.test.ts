/** Connections from somebody else to an engine's TCP listener are dropped and the communicator works on. */
import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { type SteerableRank, Steering } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

const LISTENING = '0A';
const SSH_PORT = 22;

/** Ports on which the rank's host listens, sshd's left out. */
function listeningPorts(rank: SteerableRank): number[] {
  const tables = ['tcp', 'tcp6'].map((name) => readFileSync(`/proc/${rank.machinePid}/net/${name}`, 'utf8'));
  const rows = tables.flatMap((table) => table.trim().split('\n').slice(1)).map((row) => row.trim().split(/\s+/));
  const ports = rows.filter((row) => row[3] === LISTENING).map((row) => parseInt(row[1]?.split(':')[1] ?? '', 16));
  return [...new Set(ports)].filter((port) => port !== SSH_PORT);
}

describeIf(clusterUnavailable(), 'an engine’s listener', () => {
  it('drops noise, cut greetings and silent connections, before and after the ranks are wired', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    const argv = ['-H', 'h1:2,h2:1', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster });
    const ranks = await steering.ranks(3);
    const [first, ...others] = ranks;
    if (first === undefined) throw new Error('no rank 0');

    const disturb = async (): Promise<void> => {
      const ports = await until('an engine listens', () => {
        const found = listeningPorts(first);
        return found.length > 0 && found;
      });
      for (const port of ports) {
        const way = `/dev/tcp/10.77.0.11/${port}`;
        for (const send of [
          'head -c 100000 /dev/urandom',
          'head -c 64 /dev/zero',
          'printf x',
          'printf "GET / HTTP/1.1\\r\\n\\r\\n"',
        ]) {
          await cluster.inLogin('bash', '-c', `${send} 2>/dev/null >${way} || true`);
        }
        await cluster.inLogin('bash', '-c', `for i in 1 2 3 4 5 6 7 8; do exec {fd}<>${way} || break; done; true`);
      }
    };

    const joining = first.init();
    await disturb();
    await Promise.all([joining, ...others.map((rank) => rank.init())]);
    await disturb();
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)))).toEqual(ranks.map(() => [3, 3]));
    const received = others[1]?.receive(0, 1); // a connection made only now
    await first.tell({ do: 'send', to: 2, values: [5] });
    expect(await received).toEqual([5]);
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(0);
  });
});
