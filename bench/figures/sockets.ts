import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { clusterUnavailable } from '../../test/rig/capability.ts';
import { Cluster, type ClusterHost } from '../../test/rig/cluster.ts';
import type { Figure, Row } from '../figure.ts';
import { interleaved, runCommand } from '../measure.ts';

const BYTES_PER_SAMPLE = 1 << 30;
const ROUNDS = 30_000;

/** A program on a host of the cluster. */
const inside = (host: ClusterHost, program: string, words: readonly string[]): string[] => [
  'nsenter',
  '--target',
  String(host.init),
  '--all',
  '--',
  program,
  ...words,
];

/** Starts `argv`; resolves with its first line, which tells where it listens, and its later output. */
async function listening([name = '', ...words]: readonly string[]): Promise<{
  child: ChildProcess;
  where: string;
  rest: Promise<string>;
}> {
  const child = spawn(name, words, { stdio: ['ignore', 'pipe', 'inherit'] });
  const lines = createInterface({ input: child.stdout });
  const [where] = await once(lines, 'line');
  const rest = once(lines, 'line').then(
    ([line]) => String(line),
    () => '',
  );
  return { child, where: String(where), rest };
}

interface Contestant {
  readonly program: string;
  /** The sending side's words in front of the common ones. */
  readonly peer: (own: string, peer: string, where: string) => string[];
}

async function bandwidth(
  [from, to]: readonly [ClusterHost, ClusterHost],
  { program, peer }: Contestant,
  common: readonly string[],
): Promise<number | null> {
  const receiver = await listening(inside(to, program, ['receive', to.address, ...common]));
  const over = once(receiver.child, 'exit');
  const sent = await runCommand(
    inside(from, program, ['send', ...peer(from.address, to.address, receiver.where), ...common]),
  );
  const rate = Number(await receiver.rest);
  await over;
  return sent.status === 0 && rate > 0 ? rate : null;
}

async function latency(
  [from, to]: readonly [ClusterHost, ClusterHost],
  { program, peer }: Contestant,
): Promise<number | null> {
  const pong = await listening(inside(to, program, ['pong', to.address, String(ROUNDS)]));
  const over = once(pong.child, 'exit');
  const { status, stdout } = await runCommand(
    inside(from, program, ['ping', ...peer(from.address, to.address, pong.where), String(ROUNDS)]),
  );
  await over;
  return status === 0 && Number(stdout) > 0 ? Number(stdout) : null;
}

/** The socket backend beside a TCP program with as many sockets and threads and the same buffers. */
export const sockets: Figure = {
  name: 'sockets',
  title: 'the socket backend between two namespace hosts, one direction, beside raw TCP',
  unavailable: clusterUnavailable,
  async *run({ programs, samples }) {
    await using cluster = await Cluster.start(2);
    const [first, second] = cluster.hosts;
    if (first === undefined || second === undefined) return;
    const hosts = [first, second] as const;
    const ours: Contestant = {
      program: await programs.ofNetwork('net_sockets'),
      peer: (own, _peer, handle) => [own, handle],
    };
    const raw: Contestant = { program: await programs.plain('raw_tcp'), peer: (_own, peer, port) => [peer, port] };
    const row = async (
      what: string,
      unit: Row['unit'],
      factor: number,
      measure: (one: Contestant) => Promise<number | null>,
    ): Promise<Row> => {
      const medians = await interleaved(
        [
          { name: 'ours', measure: () => measure(ours) },
          { name: 'raw', measure: () => measure(raw) },
        ],
        samples,
      );
      const goal = { kind: 'ratio', factor, against: ['raw'] } as const;
      return { what, unit, ours: medians.get('ours') ?? null, peers: { raw: medians.get('raw') ?? null }, goal };
    };
    yield await row('8 B', 'µs', 1.3, (one) => latency(hosts, one));
    for (const [count, helpers] of [
      [1, 0],
      [2, 2],
      [4, 2],
    ]) {
      for (const bytes of [4 << 20, 16 << 20, 64 << 20]) {
        const common = [count, helpers, bytes, BYTES_PER_SAMPLE / bytes].map(String);
        const time = async (one: Contestant): Promise<number | null> => {
          const rate = await bandwidth(hosts, one, common);
          return rate === null ? null : bytes / rate;
        };
        yield await row(`${bytes >> 20} MiB ${count}×${helpers}`, 'µs', 1 / 0.95, time);
      }
    }
  },
};
