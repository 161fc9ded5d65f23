import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { repository } from '../../test/rig/cluster.ts';
import { runInGuest, softRoceUnavailable } from '../../test/rig/soft-roce/guest.ts';
import type { Figure, Goal, Row } from '../figure.ts';
import { median } from '../measure.ts';

const LIMIT_SECONDS = 900;

/** What is compared, as verbs_in_guest.sh names it. */
interface Comparison {
  readonly name: string;
  readonly what: string;
  readonly unit: Row['unit'];
  readonly own: string;
  readonly peers: readonly string[];
  readonly goals: readonly (Goal | null)[];
}

const ratio = (factor: number, peer: string): Goal => ({ kind: 'ratio', factor, against: [peer] });
/** Of times: bandwidths are turned into times of a message. */
const atLeast90 = (peer: string): Goal => ratio(1 / 0.9, peer);
const transfer = (bytes: number, what: string): Comparison => ({
  name: `bandwidth-${bytes}`,
  what: `${what}, one way`,
  unit: 'µs',
  own: 'ours',
  peers: ['perftest', 'raw'],
  goals: [atLeast90('perftest')],
});
const sum = (bytes: number, what: string): Comparison => ({
  name: `all_reduce-${bytes}`,
  what: `all_reduce ${what}`,
  unit: 'µs',
  own: 'IB',
  peers: ['Socket'],
  goals: [null],
});
const comparisons: readonly Comparison[] = [
  {
    name: 'latency-8',
    what: '8 B',
    unit: 'µs',
    own: 'ours',
    peers: ['raw', 'advertised', 'perftest'],
    goals: [ratio(1.3, 'raw'), ratio(2.5, 'perftest')],
  },
  transfer(65_536, '64 KiB'),
  transfer(1 << 20, '1 MiB'),
  sum(65_536, '64 KiB'),
  sum(2 << 20, '2 MiB'),
  sum(64 << 20, '64 MiB'),
];

/** Values by contestant and comparison. */
function valuesOf(lines: readonly string[]): Map<string, number[]> {
  const values = new Map<string, number[]>();
  for (const line of lines) {
    const [, name = '', what = '', text] = /^(\w+) ([\w-]+) ([\d.]+)$/.exec(line) ?? [];
    const bytes = /^bandwidth-(\d+)$/.exec(what)?.[1];
    const value = bytes === undefined ? Number(text) : Number(bytes) / Number(text);
    if (Number.isFinite(value) && value > 0)
      values.set(`${name} ${what}`, [...(values.get(`${name} ${what}`) ?? []), value]);
  }
  return values;
}

/** The verbs backend over rdma_rxe beside verbs alone and perftest, all in one emulated guest. */
export const verbs: Figure = {
  name: 'verbs',
  title: 'the verbs backend over Soft-RoCE in a guest, beside raw verbs and perftest; all_reduce beside our sockets',
  unavailable: softRoceUnavailable,
  async *run({ programs, samples }) {
    const out = await mkdtemp(join(repository, 'build/bench-guest-'));
    try {
      const words = [
        join(repository, 'bench/programs/verbs_in_guest.sh'),
        String(samples),
        await programs.ofNativeBuild('net_transfers'),
        await programs.ofNativeBuild('raw_verbs'),
        join(repository, 'bin/ncclrun'),
      ];
      const { lines } = await runInGuest(`export XDG_CACHE_HOME=/tmp; bash ${words.join(' ')}`, out, LIMIT_SECONDS);
      const values = valuesOf(lines);
      for (const { name, what, unit, own, peers, goals } of comparisons) {
        const medians = peers.map((peer) => [peer, median(values.get(`${peer} ${name}`) ?? [])] as const);
        const ours = median(values.get(`${own} ${name}`) ?? []);
        for (const goal of goals) yield { what, unit, ours, peers: Object.fromEntries(medians), goal };
      }
    } finally {
      await rm(out, { recursive: true });
    }
  },
};
