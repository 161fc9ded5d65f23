import { spawn } from 'node:child_process';
import { once } from 'node:events';
import * as v from 'valibot';
import { clusterUnavailable, findProgram } from '../../test/rig/capability.ts';
import { Cluster } from '../../test/rig/cluster.ts';
import type { Figure } from '../figure.ts';
import { interleaved, runCommand } from '../measure.ts';
import { launchOver } from './over_ssh.ts';

const BYTES_PER_SAMPLE = 1 << 30;

const iperfDocument = v.object({ end: v.object({ sum_received: v.object({ bits_per_second: v.number() }) }) });

/** nsenter's arguments up to iperf3's own, on the host of that init. */
function inside(init: number): string[] {
  return ['--target', String(init), '--all', '--', 'iperf3'];
}

/** MB/s of one TCP stream from the first host to the second. */
async function iperf(cluster: Cluster): Promise<number | null> {
  const [from, to] = cluster.hosts;
  if (from === undefined || to === undefined) return null;
  const server = spawn('nsenter', [...inside(to.init), '-s', '-1', '--forceflush'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const over = once(server, 'exit');
  await once(server.stdout, 'data'); // it listens
  const client = await runCommand(['nsenter', ...inside(from.init), '-c', to.address, '-t', '2', '-J']);
  await over;
  if (client.status !== 0) return null;
  return v.parse(iperfDocument, JSON.parse(client.stdout)).end.sum_received.bits_per_second / 8e6;
}

/** ncclSend in one direction over one connection, beside one stream of iperf3. */
export const send: Figure = {
  name: 'send',
  title: 'ncclSend between two namespace hosts, one direction, one connection',
  unavailable: () => clusterUnavailable() ?? (findProgram('iperf3') === null ? 'iperf3 is not installed' : null),
  async *run({ programs, samples }) {
    await using cluster = await Cluster.start(2);
    const program = await programs.withEngine('send_one_way');
    for (const bytes of [4 << 20, 16 << 20, 64 << 20]) {
      const argv = [...launchOver('auto', cluster, 1), program, String(bytes), String(BYTES_PER_SAMPLE / bytes)];
      const ours = async (): Promise<number | null> => {
        const { status, stdout } = await runCommand(argv, { cluster });
        const rate = Number(/\d+\.\d/.exec(stdout)?.[0]);
        return status === 0 && Number.isFinite(rate) ? bytes / rate : null;
      };
      const theirs = async (): Promise<number | null> => {
        const rate = await iperf(cluster);
        return rate === null ? null : bytes / rate;
      };
      const medians = await interleaved(
        [
          { name: 'ours', measure: ours },
          { name: 'iperf3', measure: theirs },
        ],
        samples,
      );
      yield {
        what: `${bytes >> 20} MiB`,
        unit: 'µs',
        ours: medians.get('ours') ?? null,
        peers: { iperf3: medians.get('iperf3') ?? null },
        goal: { kind: 'ratio', factor: 1 / 0.9, against: ['iperf3'] },
      };
    }
  },
};
