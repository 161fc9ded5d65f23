/** `ncclrun topo [--from FILE | --host HOST] [--format …]`: shows what a machine is. */
import { hostname } from 'node:os';
import { basename } from 'node:path';
import { printableLine } from '../../../control/printable.ts';
import { writeXml } from '../../../control/topology/write-xml.ts';
import { localNetworkPlugin, localTopology, localVerbs } from '../../local/host.ts';
import { makePaint, type Paint } from '../../text/colour.ts';
import { standardStreams, type StandardStreams } from '../../report/standard-streams.ts';
import { ourLine } from '../../report/summary.ts';
import { isRenumbered } from '../../topology/complete.ts';
import { checked, readUserTopologyFile } from '../../topology/file.ts';
import { otherHost } from '../topology-of-host.ts';
import type { PrintedTopology } from '../../topology/printed.ts';
import { jsonOf } from '../../topology/json.ts';
import { type NetworkPlugin, networkPluginOf, networkPluginText } from '../../topology/network-plugin.ts';
import { survey, type Survey } from '../../topology/survey.ts';
import { svgOf } from '../../topology/svg/svg.ts';
import { textOf } from '../../topology/text.ts';
import { verbsText, verbsViews } from '../../topology/verbs.ts';
import type { VerbsPortView } from '../../topology/verbs.ts';
import { checkedWords } from '../checked-words.ts';
import { commandTable } from '../command-table.ts';
import { topoCommandLine, type JobOptionName, type TopoOptionName } from '../options.ts';
import { topologyFormats } from '../options/topology.ts';
import { readCommandLine } from '../read-command-line.ts';
import type { Settings } from '../settings.ts';
import { reportRefusals } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';

type Names = TopoOptionName | JobOptionName;

/** Returns the exit status. Throws a FailureError (usage), also for a file that is no topology. */
export async function topo(argv: readonly string[]): Promise<number> {
  const { asked, settings, files, words } = readCommandLine<Names>(argv, topoCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('topo');
  if (asked === 'version') return (await import('./version.ts')).version();
  await reportRefusals(files);
  checkedWords(words, commandTable.topo);

  const streams = standardStreams();
  const found = await find(settings, streams);
  if (typeof found === 'number') return found;
  const format = formatOf(settings);
  const text = written(found, format, makePaint(streams.stdoutIsTerminal(), process.env));
  if (format !== 'json') {
    const paint = makePaint(streams.stderrIsTerminal(), process.env);
    for (const note of found.machine.notes) await streams.stderr.printPainted(ourLine(note, paint));
  }
  await (format === 'text' ? streams.stdout.printPainted(text) : streams.stdout.print(text));
  return 0;
}

interface Found {
  readonly machine: Survey;
  /** InfiniBand and RoCE ports; a file tells of none. */
  readonly verbs: readonly VerbsPortView[];
  readonly networkPlugin: NetworkPlugin | null;
  /** Before its root element. */
  readonly comments: readonly string[];
}

/** Returns the topology, or the exit status if the query of the host failed and its failure has been reported. */
async function find(settings: Settings<Names>, streams: StandardStreams): Promise<Found | number> {
  const file = settings.text('from');
  const host = settings.text('topo-host');
  if (file !== null && host !== null)
    throw usageError('--from and --host both name the machine to show', 'leave one of them out');
  if (file !== null) {
    const { root, comments } = readUserTopologyFile(file);
    const title = file === '-' ? 'standard input' : printableLine(basename(file));
    const notes = isRenumbered(root) ? [`${title}: GPUs without a number of their own are counted in its order`] : [];
    return { machine: checked(() => survey(root, title, notes)), verbs: [], networkPlugin: null, comments };
  }
  if (host?.includes(',') === true) throw usageError(`--host ${host}: one host at a time`, 'name one host');
  const detected = host === null ? await ownMachine() : await otherHost(host, settings, streams);
  if (typeof detected === 'number') return detected;
  const { system, notes, ...networks } = detected;
  return { machine: checked(() => survey(system, host ?? hostname(), notes)), ...networks, comments: [] };
}

async function ownMachine(): Promise<PrintedTopology> {
  const [{ system, notes }, verbs, search] = await Promise.all([localTopology(), localVerbs(), localNetworkPlugin()]);
  const { plugin, notes: ofPlugins } = networkPluginOf(search.output, search.waitStatus);
  return {
    system,
    notes: [...notes, ...ofPlugins],
    verbs: verbsViews(verbs, process.env),
    networkPlugin: plugin,
  };
}

function formatOf(settings: Settings<Names>): (typeof topologyFormats)[number] {
  const name = settings.text('format') ?? (settings.flag('json') ? 'json' : 'text');
  return topologyFormats.find((format) => format === name) ?? 'text';
}

function written(
  { machine, verbs, networkPlugin, comments }: Found,
  format: (typeof topologyFormats)[number],
  paint: Paint,
): string {
  switch (format) {
    case 'text':
      return withNetworks(textOf(machine, paint), `${verbsText(verbs)}${networkPluginText(networkPlugin)}`);
    case 'json':
      return jsonOf(machine, verbs, networkPlugin);
    case 'xml':
      return writeXml(machine.system, comments);
    case 'svg':
      return svgOf(machine);
    default:
      return format satisfies never;
  }
}

function withNetworks(text: string, networks: string): string {
  return networks === '' ? text : `${text.trimEnd()}\n${networks}`;
}
