import { once } from 'node:events';
import { clusterUnavailable, findProgram } from '../../test/rig/capability.ts';
import { Cluster, type ClusterHost } from '../../test/rig/cluster.ts';
import type { Figure, Row } from '../figure.ts';
import { inside, listening } from '../inside.ts';
import { median, rounds, runCommand } from '../measure.ts';

/** Short, so that a busy second of the machine hits both contestants of a round. */
const BYTES_PER_ROUND = 256 << 20;
const PINGS_PER_ROUND = 10_000;
const ROUNDS_PER_SAMPLE = 3;
const MIB = 1 << 20;

/** Messages one way. */
interface Load {
  readonly wait: 'spin' | 'sleep';
  readonly sockets: number;
  readonly helpers: number;
  readonly bytes: number;
  readonly messages: number;
}

interface Contestant {
  readonly program: string;
  /** Words of the side at `own` that listens, with a load or for a ping-pong. */
  readonly listen: (own: string, load: Load | null) => readonly string[];
  /** Words of the other side; `where`: what the side that listens has printed. */
  readonly connect: (own: string, peer: string, where: string, load: Load | null) => readonly string[];
}

const numbers = (...values: number[]): string[] => values.map(String);
const networkAt = (address: string, load: Load | null): string =>
  ['sockets', address, ...numbers(load?.sockets ?? 1, load?.helpers ?? 0)].join(',');

/** A ping-pong has a number of rounds instead of a load. */
const engineWords = (load: Load | null): string[] =>
  load === null ? numbers(PINGS_PER_ROUND) : [load.wait, ...numbers(load.bytes, load.messages)];
const rawWords = (load: Load | null): string[] =>
  load === null
    ? numbers(PINGS_PER_ROUND)
    : [load.wait, ...numbers(load.sockets, load.helpers, load.bytes, load.messages)];

const engine = (program: string): Contestant => ({
  program,
  listen: (own, load) => [networkAt(own, load), ...engineWords(load)],
  connect: (own, _peer, where, load) => [networkAt(own, load), where, ...engineWords(load)],
});
const rawTcp = (program: string): Contestant => ({
  program,
  listen: (own, load) => [own, ...rawWords(load)],
  connect: (_own, peer, where, load) => [peer, where, ...rawWords(load)],
});

/** Bytes per microsecond. */
async function bandwidth(
  [from, to]: readonly [ClusterHost, ClusterHost],
  { program, listen, connect }: Contestant,
  load: Load,
): Promise<number | null> {
  const receiver = await listening(inside(to, program, ['receive', ...listen(to.address, load)]));
  const over = once(receiver.child, 'exit');
  const words = connect(from.address, to.address, receiver.where, load);
  const sent = await runCommand(inside(from, program, ['send', ...words]));
  const rate = Number(await receiver.rest);
  await over;
  return sent.status === 0 && rate > 0 ? rate : null;
}

/** Microseconds one way. */
async function latency(
  [from, to]: readonly [ClusterHost, ClusterHost],
  { program, listen, connect }: Contestant,
): Promise<number | null> {
  const pong = await listening(inside(to, program, ['pong', ...listen(to.address, null)]));
  const over = once(pong.child, 'exit');
  const words = connect(from.address, to.address, pong.where, null);
  const { status, stdout } = await runCommand(inside(from, program, ['ping', ...words]));
  await over;
  return status === 0 && Number(stdout) > 0 ? Number(stdout) : null;
}

/** Microseconds per message by iperf3 with as many streams, which has no threads of its own. */
async function iperf3(
  [from, to]: readonly [ClusterHost, ClusterHost],
  streams: number,
  bytes: number,
): Promise<number> {
  const server = await listening(inside(to, 'iperf3', ['-s', '-1', '--forceflush']));
  const over = once(server.child, 'exit');
  const words = ['-c', to.address, '-P', String(streams), '-n', String((4 * BYTES_PER_ROUND) / streams), '-J'];
  const { stdout } = await runCommand(inside(from, 'iperf3', words));
  await over;
  const bitsPerSecond = /"sum_received":\s*\{[^}]*"bits_per_second":\s*([\d.e+]+)/.exec(stdout)?.[1];
  return (bytes * 8e6) / Number(bitsPerSecond);
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
    const ours = engine(await programs.ofNativeBuild('net_transfers'));
    const raw = rawTcp(await programs.plain('raw_tcp'));
    const row = async (
      what: string,
      factor: number | null,
      measure: (one: Contestant) => Promise<number | null>,
      beside: Row['peers'] = {},
    ): Promise<Row> => {
      const contestants = [
        { name: 'ours', measure: () => measure(ours) },
        { name: 'raw', measure: () => measure(raw) },
      ];
      const taken = await rounds(contestants, samples * ROUNDS_PER_SAMPLE);
      const [own, other] = [taken.get('ours') ?? [], taken.get('raw') ?? []];
      const ratios = own.map((value, round) => (value === null ? null : value / (other[round] ?? Number.NaN)));
      const goal = factor === null ? null : ({ kind: 'ratio', factor, against: ['raw'] } as const);
      const peers = { raw: median(other), ...beside };
      return { what, unit: 'µs', ours: median(own), peers, goal, ratio: median(ratios) };
    };
    yield await row('8 B', 1.3, (one) => latency(hosts, one));
    for (const [wait, count, helpers] of [
      ['spin', 1, 0],
      ['sleep', 1, 0],
      ['sleep', 4, 2],
    ] as const) {
      for (const bytes of [64 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB]) {
        const load = { wait, sockets: count, helpers, bytes, messages: BYTES_PER_ROUND / bytes };
        const time = async (one: Contestant): Promise<number | null> => {
          const rate = await bandwidth(hosts, one, load);
          return rate === null ? null : bytes / rate;
        };
        const size = bytes < MIB ? `${bytes >> 10} KiB` : `${bytes >> 20} MiB`;
        const beside = findProgram('iperf3') === null ? {} : { iperf3: await iperf3(hosts, count, bytes) };
        yield await row(`${size} ${count}×${helpers} ${wait}`, bytes < 4 * MIB ? null : 1 / 0.95, time, beside);
      }
    }
  },
};
