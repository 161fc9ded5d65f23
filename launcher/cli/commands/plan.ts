/** `ncclrun plan`: shows what the planner decides about channels, and starts nothing. */
import { readFileUpTo } from '../../../control/read-file.ts';
import { UnplannableError } from '../../../control/planner/input/check.ts';
import { graphsOf } from '../../../control/planner/known-machine.ts';
import { plannerVariables } from '../../../control/planner/environment.ts';
import type { PlannerVariables } from '../../../control/planner/environment.ts';
import { preferencesFrom } from '../../../control/planner/input/preferences.ts';
import type { Preferences } from '../../../control/planner/input/preferences.ts';
import { planCluster } from '../../../control/planner/cluster/plan-cluster.ts';
import type { PlannedCluster } from '../../../control/planner/cluster/plan-cluster.ts';
import type { AggregatorPlace } from '../../../control/planner/input/network-reduction.ts';
import { plannedAggregators } from '../../plan/aggregators.ts';
import { diffPlans } from '../../plan/diff.ts';
import { engineMemory, enginePlanText, engineTuning } from '../../plan/engine.ts';
import { measuredHere } from '../../plan/measured-here.ts';
import type { MeasuredOnMachine } from '../../plan/measured-here.ts';
import { planOnProcessors } from '../../plan/processors.ts';
import { hostGroups, sizesOf } from '../../plan/request.ts';
import { planText } from '../../plan/text.ts';
import { verify } from '../../plan/verify.ts';
import { viewOf } from '../../plan/view.ts';
import { localTopology, localVerbs } from '../../local/host.ts';
import { verbsViews } from '../../topology/verbs.ts';
import type { PortGids } from '../../plan/nics.ts';
import { checked, readUserGraphsFile } from '../../topology/file.ts';
import { standardStreams } from '../../report/standard-streams.ts';
import { collectivesOf } from '../collectives.ts';
import { planCommandLine, type PlanOptionName } from '../options.ts';
import { readCommandLine } from '../read-command-line.ts';
import type { Settings } from '../settings.ts';
import { reportRefusals } from '../report-refusals.ts';
import { usageError } from '../../model/usage-error.ts';
import { messageOf } from '../../../control/message-of.ts';

/** Of what --diff compares; what plan writes of 576 GPUs has less. */
const MAX_BYTES = 256 * 1024 * 1024;

/** Returns the exit status: 1 where --verify finds a link with too much, or --diff a difference. Throws a FailureError (usage). */
export async function plan(argv: readonly string[]): Promise<number> {
  const { asked, settings, files, words } = readCommandLine<PlanOptionName>(argv, planCommandLine, process.env);
  if (asked === 'help') return (await import('./help.ts')).help('plan');
  if (asked === 'version') return (await import('./version.ts')).version();
  await reportRefusals(files);
  if (settings.flag('diff')) return compare(words);
  const [word] = words;
  if (word !== undefined) throw usageError(`"${word}" is no option`, 'a topology is given with --topo FILE');

  const topologies = settings.list('topo');
  const ranks = settings.integer('ranks');
  const [nodes, simulated] = [settings.integer('nodes'), settings.integer('simulate-hosts')];
  const isOneMachine = simulated !== null;
  if (topologies.length === 0 && ranks !== null && process.env['NCCLRUN_DEVICE'] === 'host') {
    const shown = {
      collectives: collectivesOf(settings.list('collective')),
      sizes: sizesOf(settings.text('sizes')),
      explain: settings.flag('explain'),
    };
    const hosts = simulated ?? nodes ?? 1;
    const aggregatorPlaces = placesOf(settings, hosts);
    return print(
      await readingVariablesAsync(() =>
        planOnProcessors({ ranks, hosts, isOneMachine, aggregatorPlaces }, formatOf(settings), shown),
      ),
      0,
    );
  }
  const wanted = { topologies, nodes, ranks, simulated };
  const own = topologies.length === 0 ? (await localTopology()).system : null;
  const groups = hostGroups(wanted, own);
  const variables = planVariables(process.env);
  const planned = checked(() => planCluster(groups, variables));
  if (settings.flag('verify')) {
    const { text, ok } = verify(planned.cluster);
    return print(text, ok ? 0 : 1);
  }
  const { preferences } = variables;
  const aggregatorPlaces = placesOf(settings, planned.cluster.hosts.length);
  const wantedHere = { system: own, isOneMachine, preferences, aggregatorPlaces };
  const here = await readingVariablesAsync(() => measuredHere(planned, wantedHere));
  const gids = own === null ? NO_GIDS : await ownGids();
  return print(await rendered(planned, variables, settings, { ...here, gids }), 0);
}

async function rendered(
  planned: PlannedCluster,
  variables: PlanVariables,
  settings: Settings<PlanOptionName>,
  here: MeasuredOnMachine & { readonly gids: PortGids },
): Promise<string> {
  const format = formatOf(settings);
  if (format === 'nccl-xml') return graphsOfFirst(planned);
  if (format === 'engine') return enginePlanText(planned.cluster, process.env, here);
  const view = viewOf(planned.cluster, {
    collectives: collectivesOf(settings.list('collective')),
    sizes: sizesOf(settings.text('sizes')),
    full: settings.flag('full'),
    preferences: variables.preferences,
    situation: here.situation,
    table: here.table,
    settings: variables.settings,
    gids: here.gids,
    memory: engineMemory(planned.cluster, process.env, here),
    engineTuning: engineTuning(planned.cluster, process.env, here),
  });
  if (format === 'json') return `${JSON.stringify(view)}\n`;
  if (format === 'svg') return (await import('../../plan/svg.ts')).planSvg(view);
  return here.network + planText(view, settings.flag('explain'));
}

function placesOf(settings: Settings<PlanOptionName>, hosts: number): AggregatorPlace[] {
  const count = settings.text('collnet') === null ? null : (settings.integer('collnet') ?? 'auto');
  return plannedAggregators({ count, words: settings.list('collnet-hosts'), hosts });
}

const NO_GIDS: PortGids = new Map();

/** Of this machine's ports that a job would use. */
async function ownGids(): Promise<PortGids> {
  const ports = verbsViews(await localVerbs(), process.env);
  return new Map(ports.flatMap(({ card, port, gid }) => (gid === null ? [] : [[`${card} ${port}`, gid.gid] as const])));
}

function formatOf(settings: Settings<PlanOptionName>): string {
  return settings.flag('json') ? 'json' : (settings.text('format') ?? 'text');
}

type PlanVariables = PlannerVariables & { readonly preferences: Preferences };

function planVariables(environment: NodeJS.ProcessEnv): PlanVariables {
  return readingVariables(() => {
    const preferences = preferencesFrom(environment);
    const variables = plannerVariables(environment);
    const file = environment['NCCL_GRAPH_FILE'] ?? '';
    const graphs = file === '' ? null : readUserGraphsFile('NCCL_GRAPH_FILE', file);
    return { ...variables, shape: { ...variables.shape, graphs }, preferences };
  });
}

/** Runs `read`; turns an UnplannableError about a variable into a FailureError (usage). */
function readingVariables<Result>(read: () => Result): Result {
  try {
    return read();
  } catch (error) {
    throw asUsage(error);
  }
}

async function readingVariablesAsync<Result>(read: () => Promise<Result>): Promise<Result> {
  try {
    return await read();
  } catch (error) {
    throw asUsage(error);
  }
}

function asUsage(error: unknown): unknown {
  return error instanceof UnplannableError ? usageError(error.message, 'correct the variable, or unset it') : error;
}

/** As NCCL_GRAPH_DUMP_FILE of the first host. */
function graphsOfFirst({ cluster }: PlannedCluster): string {
  const [shape] = cluster.shapes;
  if (shape === undefined) throw new RangeError('a plan needs a host');
  return graphsOf(shape);
}

function compare(words: readonly string[]): Promise<number> {
  const [one, other, extra] = words;
  if (one === undefined || other === undefined || extra !== undefined) {
    throw usageError('--diff takes two files', 'write: ncclrun plan --diff A.json B.json');
  }
  const text = diffPlans({ name: one, text: readText(one) }, { name: other, text: readText(other) });
  return print(text === '' ? 'The plans are equal.\n' : text, text === '' ? 0 : 1);
}

function readText(path: string): string {
  try {
    return readFileUpTo(path, MAX_BYTES).toString('utf8');
  } catch (error) {
    throw usageError(`the plan ${path} cannot be read: ${messageOf(error)}`, null);
  }
}

async function print(text: string, status: number): Promise<number> {
  await standardStreams().stdout.print(text);
  return status;
}
