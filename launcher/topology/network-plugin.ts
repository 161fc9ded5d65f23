/** The network plugin by which jobs on a machine would reach other hosts, for `ncclrun topo`. */
import * as v from 'valibot';
import { exitOf } from '../../control/messages/payload.ts';
import { printableLine } from '../../control/printable.ts';
import { networkSpeed } from '../../control/speed-text.ts';
import { signalName, signalNumber } from '../model/signal-number.ts';
import { objectOfLine } from '../report/measured-lines.ts';
import { signalWithMeaning } from '../report/signal-name.ts';
import { columns } from '../text/columns.ts';

const text = v.pipe(v.string(), v.maxLength(1000), v.transform(printableLine));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const plugin = v.object({
  name: text,
  nics: v.array(v.object({ name: text, port: count, speedMbps: count })),
});
const line = v.union([plugin, v.object({ passedOver: text }), v.object({ refused: text })]);

/** As the plugin names itself and its devices; `speedMbps` 0: it does not say. */
export type NetworkPlugin = v.InferOutput<typeof plugin>;

interface FoundNetworkPlugin {
  /** Null: jobs use InfiniBand or sockets. */
  readonly plugin: NetworkPlugin | null;
  /** Why plugins that there are do not serve. */
  readonly notes: readonly string[];
}

/** Of the program that looks for it (native/perf): what it printed, and how it ended. A plugin runs in that process, and may end it. */
export function networkPluginOf(output: string, waitStatus: number): FoundNetworkPlugin {
  let found: NetworkPlugin | null = null;
  let refused: string | null = null;
  const passedOver: string[] = [];
  for (const one of output.split('\n')) {
    const read = v.safeParse(line, objectOfLine(one));
    if (!read.success) continue; // the plugin's own output
    if ('name' in read.output) found = read.output;
    else if ('refused' in read.output) ({ refused } = read.output);
    else passedOver.push(read.output.passedOver);
  }
  const { signalNumber: signal } = exitOf(waitStatus);
  if (signal !== null) passedOver.push(lossText(signal));
  const notes = passedOver.filter((why) => refused?.includes(why) !== true).map((why) => `no network plugin: ${why}`);
  return {
    plugin: found,
    notes: refused === null ? notes : [...notes, `jobs on several hosts would end: ${refused}`],
  };
}

function lossText(signal: number): string {
  if (signal === signalNumber('SIGALRM')) return 'it did not start within 10 s; NCCL_NET_PLUGIN=none uses none';
  const name = signalName(signal);
  const what = name === null ? `signal ${signal}` : signalWithMeaning(name);
  return `it ended the process that loaded it by ${what}; NCCL_NET_PLUGIN=none uses none`;
}

/** As `ncclrun topo --format json` has it; null also for what is none. */
export function readNetworkPlugin(value: unknown): NetworkPlugin | null {
  const read = v.safeParse(plugin, value);
  return read.success ? read.output : null;
}

/** A line for each device; nothing where there is no plugin. */
export function networkPluginText(found: NetworkPlugin | null): string {
  if (found === null) return '';
  const rows = found.nics.map(({ name, port, speedMbps }) => [
    name,
    String(port),
    speedMbps === 0 ? '-' : networkSpeed(speedMbps),
  ]);
  return `\nnetwork plugin ${found.name}\n${columns([['device', 'port', 'rate'], ...rows])}`;
}
