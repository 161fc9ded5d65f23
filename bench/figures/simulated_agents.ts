import type { Figure, Row } from '../figure.ts';
import { median } from '../measure.ts';
import { simulatedStart } from '../simulated/job.ts';

const RANKS_PER_HOST = 8;
/** Hosts, and whether their slots are stated with them or found there. */
const sizes = [
  [10, 'stated'],
  [100, 'stated'],
  [1000, 'stated'],
  [1000, 'found'],
] as const;
const MAX_MS = 3000;
/** What a host costs may grow by this factor from the first size to the last: its numbers have more digits. */
const GROWTH = 1.1;

/** The launcher alone, with all its code: agents that answer at once, in its own process. */
export const simulatedAgents: Figure = {
  name: 'simulated-agents',
  title: 'simulated agents of 8 ranks each, from the first hello to the last rank’s start; what goes over the links',
  unavailable: () => null,
  async *run({ samples }) {
    await simulatedStart(100, RANKS_PER_HOST, 'stated'); // compiles
    const max = { messages: Infinity, bytes: Infinity };
    for (const [hosts, slots] of sizes) {
      const starts = [];
      for (let sample = 0; sample < samples; sample++) starts.push(await simulatedStart(hosts, RANKS_PER_HOST, slots));
      const [one] = starts;
      if (one === undefined) return;
      const messages = one.traffic.messages / hosts;
      const bytes = one.traffic.bytes / hosts;
      if (max.messages === Infinity) Object.assign(max, { messages: messages * GROWTH, bytes: bytes * GROWTH });
      const row = (what: string, unit: Row['unit'], ours: number | null, bound: number | null): Row => ({
        what: `${hosts} hosts, slots ${slots}: ${what}`,
        unit,
        ours,
        peers: {},
        goal: bound === null ? null : { kind: 'at-most', bound: Math.round(bound) },
      });
      yield row('start', 'ms', median(starts.map(({ startMs }) => startMs)), MAX_MS);
      yield row('for each host', 'messages', messages, max.messages);
      yield row('for each host', 'B', bytes, max.bytes);
      yield row('end', 'ms', median(starts.map(({ endMs }) => endMs)), null);
      yield row('one communicator', 'ms', median(starts.map(({ joinMs }) => joinMs)), null);
      yield row('it for each host', 'messages', one.joining.messages / hosts, null);
      yield row('it for each host', 'B', one.joining.bytes / hosts, null);
    }
  },
};
