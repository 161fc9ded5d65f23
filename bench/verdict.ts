/**
 * node bench/verdict.ts [--json]: the launcher's CPU time for one verdict about 1,024 simulated ranks, 8 a host, in 264 communicators or 1,024: the JSON of
 * both readings is parsed and checked as from agents, and judged. Of several hangs, the median of several repetitions.
 */
import { parseArgs } from 'node:util';
import { parseReport } from '../control/link/validate.ts';
import { encodeJson } from '../control/messages/codec.ts';
import { judgeHangs } from '../launcher/hang/judge.ts';
import type { Reading } from '../launcher/hang/table.ts';
import { ended, readings } from '../test/rig/positions.ts';
import type { PlantedComm } from '../test/rig/positions.ts';

const RANKS = 1024;
const RANKS_PER_HOST = 8;
const REPETITIONS = 9;

const count = (length: number): number[] => Array.from({ length }, (_, index) => index);
const tensor = count(RANKS / 8).map((group) => count(8).map((rank) => group * 8 + rank));
const data = count(8).map((rank) => count(RANKS / 8).map((group) => group * 8 + rank));
const pipeline = count(RANKS / 8).map((group) => [group * 8, (group * 8 + 8) % RANKS]);

function comms(waiting: (ranks: readonly number[], name: string) => PlantedComm): PlantedComm[] {
  return [
    ...tensor.map((ranks, index) => ({ id: `a${index}`.padStart(16, '0'), ranks, all: ended(4) })),
    ...pipeline.map((ranks, index) => ({ id: `b${index}`.padStart(16, '0'), ranks, all: ended(9) })),
    ...data.map((ranks, index) => waiting(ranks, `d${index}`.padStart(16, '0'))),
  ];
}

const jobs = {
  'one rank is late': comms((ranks, id) => ({ id, ranks, changes: ranks.includes(512) ? { 512: ended(16) } : {} })),
  'half of all ranks are late': comms((ranks, id) => ({
    id,
    ranks,
    changes: Object.fromEntries(ranks.filter((rank) => rank % 16 < 8).map((rank) => [rank, ended(16)])),
  })),
  'a deadlock of 1,024 communicators': count(RANKS).map((index) => {
    const next = (index + 1) % RANKS;
    return { id: index.toString(16).padStart(16, '0'), ranks: [index, next], changes: { [next]: ended(16) } };
  }),
  'all are inside': comms((ranks, id) => ({ id, ranks })),
};

/** As frames of the agents have it. */
function sent({ answers }: Reading): [host: string, payload: Uint8Array][] {
  return Array.from(answers, ([host, where]) => [host, encodeJson({ type: 'rankPositions', where })]);
}

function received(frames: readonly (readonly [host: string, payload: Uint8Array])[]): Reading {
  const answers: Reading['answers'] = new Map(
    frames.flatMap(([host, payload]) => {
      const report = parseReport(payload);
      return report.type === 'rankPositions' ? [[host, report.where]] : [];
    }),
  );
  return { answers, asked: [...answers.keys()] };
}

function secondsOf(planted: readonly PlantedComm[]): number {
  const [first, second] = readings({ comms: planted, ranksPerHost: RANKS_PER_HOST });
  const frames = [sent(first), sent(second)] as const;
  const before = process.cpuUsage();
  if (judgeHangs(received(frames[0]), received(frames[1])).length === 0) throw new Error('no verdict');
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1e6;
}

const { values } = parseArgs({ options: { json: { type: 'boolean', default: false } } });
const rows = Object.entries(jobs).map(([what, planted]) => {
  const all = count(REPETITIONS).map(() => secondsOf(planted));
  const median = all.toSorted((one, other) => one - other)[Math.floor(REPETITIONS / 2)] ?? 0;
  return { what, ranks: RANKS, seconds: Math.round(median * 1000) / 1000 };
});
if (values.json) console.log(JSON.stringify(rows));
else for (const { what, seconds } of rows) console.log(`${what.padEnd(34)} ${seconds.toFixed(3)} s of CPU`);
