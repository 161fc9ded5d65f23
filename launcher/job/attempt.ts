/** One attempt of a job: agents on all hosts, then the ranks. */
import { mappedRanksByHost } from '../mapping/ranks-by-host.ts';
import { localRanksOf, sharedMachineTexts } from './shared-machine.ts';
import { perhapsPortsText } from '../allocation/slots/perhaps-ports.ts';
import { systemEnvironment } from '../../control/system-text.ts';
import { UNKNOWN_HARDWARE } from '../../control/messages/hardware.ts';
import type { OrderedProgram, Placement } from '../../control/messages/link.ts';
import { withDetectedSlots } from '../allocation/detected.ts';
import { type Binding, bindRanks, reportedBinding } from '../mapping/bind.ts';
import { aggregatorHosts, helpingHosts } from '../mapping/aggregator-hosts.ts';
import { mapRanks, type Topologies } from '../mapping/map-ranks.ts';
import type { HostsOfProgram } from '../mapping/program-hosts.ts';
import type { StartAgent } from '../remote/shell/connection.ts';
import { installationRoot, installedVersion, localTables } from '../local/host.ts';
import { FailureError } from '../model/failure-error.ts';
import type { JobAggregators } from '../../control/planner/input/network-reduction.ts';
import type { GivenPlan } from '../../control/planner/input/input.ts';
import type { Tables } from '../../control/planner/measured/tables.ts';
import { aggregatorsText, startAggregators } from './aggregators.ts';
import { planMisfit } from './given-plan.ts';
import { tooFewPorts } from './port-need.ts';
import type { GpuMemoryCheck } from './gpu-memory.ts';
import { Host } from './host.ts';
import type { Job } from './job.ts';
import type { JobClock } from './job-clock.ts';
import {
  commonOrder,
  hostAddresses,
  listenerEnvironment,
  masterEnvironment,
  missingExports,
  orderedProgram,
  placementsOf,
} from './order.ts';
import type { PhaseClock } from './phase-clock.ts';
import { differences, hostsText } from './preflight.ts';
import { reachEachOther, type Reached } from './reach.ts';
import type { ReachHost } from './reach-tries.ts';
import { RendezvousHub } from './rendezvous.ts';
import { noSuchReader } from './stdin-readers.ts';
import { isTerminal } from '../model/terminal.ts';
import type { Allocation, HostSlots, JobRequest, RankMap, Reporter } from '../model/types.ts';

const MISSING_REPORT_MS = 5000;

/** What stays the same from attempt to attempt. */
export interface AttemptParts {
  readonly request: JobRequest;
  readonly reporter: Reporter;
  readonly jobId: string;
  readonly phases: PhaseClock;
  readonly clock: JobClock;
  readonly allocation: Allocation;
  readonly hostsOf: readonly HostsOfProgram[];
  /** Of aggregators, where the user says so. */
  readonly namedAggregatorHosts: readonly HostSlots[] | null;
  readonly startAgent: StartAgent;
  readonly plan: GivenPlan | null;
  readonly readsStdin: (rank: number) => boolean;
}

interface Attempt extends AttemptParts {
  readonly job: Job;
  readonly memory: GpuMemoryCheck;
  /** Attempts before this one. */
  readonly epoch: number;
  /** Null where it depends on what the hosts say of themselves. */
  readonly early: RankMap | null;
  /** The map's hosts, or all that it may have. */
  readonly asked: readonly HostSlots[];
  /** Stand by once the ranks run. */
  readonly spares: readonly HostSlots[];
}

/** Connects to every host and starts the ranks. Null if the job ended before there was a map. */
export async function startRanks(attempt: Attempt): Promise<RankMap | null> {
  const { request, allocation, namedAggregatorHosts, job, epoch, early, asked, spares, startAgent, plan } = attempt;
  const common = orderOf(attempt);
  const facts = placementFacts(attempt);
  const mapped = common.topology ? null : early; // nothing that the hosts have to say changes it
  const placements = mapped === null ? [] : placementsOf(mapped, facts);
  const handler = { ...job.handler, step: (host: Host, step: string) => stepped(attempt, hosts, host, step) };
  const host = (slots: HostSlots, placement: Placement | null): Host =>
    new Host(slots, { ...common, hostName: slots.name, placement }, handler);
  const hosts = asked.map((slots, index) => host(slots, placements[index] ?? null));
  if (early !== null) announce(attempt, early);
  if (epoch === 0) reportPorts(attempt);
  if (epoch === 0) reportMissingExports(attempt);
  job.enter('connect');
  const helpers = helpingHosts(request, allocation, namedAggregatorHosts, early).map((slots) => host(slots, null));
  const helping = new Set(helpers.map(({ name }) => name));
  job.connect(
    [...hosts, ...helpers],
    spares.filter(({ name }) => !helping.has(name)).map((slots) => host(slots, null)),
    startAgent,
  );
  await allUp(attempt, hosts);
  if (epoch === 0) reportDifferences(job, hosts);

  const map = early ?? (await mapDetected(attempt, hosts));
  if (map === null || job.state.name !== 'connecting') return map;
  const misfit = planMisfit(plan, map) ?? noSuchReader(request, map) ?? tooFewPorts(request, map);
  if (misfit !== null) {
    job.failures.fail(misfit);
    return null;
  }
  if (early === null) announce(attempt, map);
  const bindings = common.topology ? bind(attempt, map, hosts) : [];
  if (bindings === null) return null;
  const byName = new Map(hosts.map((one) => [one.slots.name, one]));
  const used = map.hosts.flatMap(({ name }) => byName.get(name) ?? []);
  const serving = servingHosts(attempt, map, [...hosts, ...helpers]);
  const reaching = [...new Set([...used, ...serving.map((one) => one.host)])];
  const [reached, tables] = await Promise.all([
    reachEachOther(reachHosts(reaching), map.ranks[0]?.host ?? 0),
    tablesBetween(attempt, used, facts.programs[0]),
  ]);
  const { addresses, unreached, problems } = reached;
  if (job.state.name !== 'connecting') return map;
  for (const message of problems) job.emit({ type: 'notice', message });
  const aggregators = await startAggregators(
    serving.map((one) => ({
      ...one,
      address: addresses[reaching.indexOf(one.host)] ?? '127.0.0.1',
      index: used.includes(one.host) ? used.indexOf(one.host) : null,
    })),
    (message) => job.emit({ type: 'notice', message }),
  );
  if (job.state.name !== 'connecting') return map;
  if (aggregators !== null) job.emit({ type: 'network', message: aggregatorsText(aggregators) });
  job.enter('spawn');
  const master = masterEnvironment(map, addresses, used);
  const late = mapped === null ? placementsOf(map, facts, bindings) : [];
  if (epoch === 0) attempt.memory.expect(hostsWithGpus(used));
  const counts = mappedRanksByHost(map).map((ranks) => ranks.length);
  const locals = localRanksOf(used, (index) => counts[index] ?? 0);
  const starts = used.map((_, index) => ({
    placement: late[index] ?? null,
    environment: { ...master, ...listenerEnvironment(addresses, index) },
    ...(locals[index] == null ? {} : { localRanks: locals[index] }),
  }));
  const known = { addresses, unreached, tables, aggregators };
  job.spawn(map, { ranks: used, others: serving.map((one) => one.host) }, starts, () =>
    hubOf(attempt, map, used, known, facts.programs[0]),
  );
  return map;
}

/** Of the job's hosts those whose aggregators it uses. */
function servingHosts(
  { request, allocation, namedAggregatorHosts, job, epoch }: Attempt,
  map: RankMap,
  hosts: readonly Host[],
): { readonly host: Host; readonly count: number }[] {
  if (request.aggregators !== null && map.hosts.length === 1 && epoch === 0) {
    const message = `--collnet: all ranks are on ${map.hosts[0]?.name}, so there is nothing to reduce between hosts`;
    job.emit({ type: 'notice', message });
  }
  return aggregatorHosts(request, allocation, namedAggregatorHosts, map).flatMap(({ slots, count }) => {
    const host = hosts.find(({ name }) => name === slots.name);
    return host === undefined ? [] : [{ host, count }];
  });
}

function orderOf({ request, jobId, epoch, asked }: Attempt): ReturnType<typeof commonOrder> {
  const version = installedVersion();
  return commonOrder({ request, jobId, version, installation: installationRoot, hostCount: asked.length, epoch });
}

function placementFacts({ request, readsStdin }: Attempt): Parameters<typeof placementsOf>[1] {
  const environment = request.programs.some(({ exports }) => exports.length > 0) ? systemEnvironment() : process.env;
  const programs = request.programs.map((program) => orderedProgram(program, environment));
  const { mergeStderr, isolateGpus, pmi } = request;
  return { programs, readsStdin, terminal: isTerminal(0), mergeStderr, isolateGpus, pmi };
}

function reportPorts({ asked, job }: Attempt): void {
  const message = perhapsPortsText(asked);
  if (message !== null) job.emit({ type: 'notice', message });
}

function reportMissingExports({ request, job, asked }: Attempt): void {
  const exports = request.programs.flatMap((program) => program.exports);
  for (const name of missingExports(exports, process.env)) {
    // srun's -x leaves out hosts.
    const mayBeHost = !/^[A-Za-z_][A-Za-z0-9_]*$/u.test(name) || asked.some((host) => host.name === name);
    const host = mayBeHost ? `; --exclude ${name} leaves out a host` : '';
    const hint = name.includes(',') ? `; several are -x ${name.replaceAll(',', ' -x ')}` : host;
    job.emit({ type: 'notice', message: `-x ${name}: it is not set here, so the ranks do not get it${hint}` });
  }
}

/** Once every host's agent starts, it is only their hellos that are waited for. */
function stepped(attempt: Attempt, hosts: readonly Host[], host: Host, step: string): void {
  attempt.job.handler.step(host, step);
  if (attempt.phases.phase === 'connect' && hosts.every(({ isReached }) => isReached)) attempt.job.enter('hello');
}

/** Resolves when every host has said hello, or the job ends; one that takes long is named. */
async function allUp({ job, clock }: Attempt, hosts: readonly Host[]): Promise<void> {
  const reminder = setInterval(() => reportMissing(job, hosts, clock), MISSING_REPORT_MS);
  await job.allUp;
  clearInterval(reminder);
}

/** What is known of the hosts once they have been asked. */
interface Known extends Pick<Reached, 'addresses' | 'unreached'> {
  readonly tables: Tables | null;
  readonly aggregators: JobAggregators | null;
}

/** The meeting point of communicators that span hosts; few jobs need it at once. `first`: the job's first program. */
function hubOf(
  { request, job, jobId, epoch, plan, clock }: Attempt,
  map: RankMap,
  used: readonly Host[],
  { addresses, unreached, tables, aggregators }: Known,
  first: OrderedProgram | undefined,
): RendezvousHub {
  const { initTimeoutSeconds: limit } = request;
  return new RendezvousHub({
    jobId,
    epoch,
    hosts: used.map((host, index) => ({
      name: host.name,
      address: addresses[index] ?? '127.0.0.1',
      cores: host.hello?.cores ?? 1,
      verbs: host.hello?.verbs ?? null,
      hardware: host.hello?.hardware ?? UNKNOWN_HARDWARE,
      tables,
      nics: (host.hello?.nics ?? []).filter(({ address }) => unreached[index]?.has(address) !== true),
    })),
    rankHosts: map.ranks.map((rank) => rank.host),
    plan,
    aggregators,
    environment: environmentOf(first),
    send: (index, frame) => used[index]?.send(frame),
    onEvent: (event) => job.emit(event),
    onMissing: (rank, message) => job.failures.missing(rank, message),
    onSuspected: (rank, suspect) => job.failures.suspect(rank, suspect),
    onDeparted: (rank, message) => job.failures.departed(rank, message),
    initTimeoutMs: limit === null ? null : limit * 1000,
    clock,
    onLate: ({ what, missing, ranks, seconds }) => job.missing(what, missing, ranks, seconds),
    onTimedOut: ({ what, missing, ranks }) => job.failures.joinedTooLate({ seconds: limit ?? 0, what, missing }, ranks),
  });
}

/** What was measured between hosts, which the launcher plans; null: nothing, or it is not wanted. */
async function tablesBetween(
  { job }: Attempt,
  used: readonly Host[],
  first: OrderedProgram | undefined,
): Promise<Tables | null> {
  if (used.length < 2) return null;
  return localTables(environmentOf(first), {
    used: (use) => job.emit({ ...use, type: 'tuning', host: hostsText(used) }),
    problem: (message) => job.emit({ type: 'notice', message }),
  });
}

function environmentOf(program: OrderedProgram | undefined): NodeJS.ProcessEnv {
  return { ...process.env, ...program?.environment };
}

function hostsWithGpus(hosts: readonly Host[]): string[] {
  return hosts.flatMap(({ name, hello }) => (hello !== null && hello.gpus > 0 ? [name] : []));
}

/** Hosts that differ make the whole job slow, or fail, later. */
function reportDifferences(job: Job, hosts: readonly Host[]): void {
  for (const message of sharedMachineTexts(hosts)) job.emit({ type: 'notice', message });
  const known = hosts.flatMap(({ preflight }) => preflight ?? []);
  if (known.length < 2) return;
  for (const message of differences(known)) job.emit({ type: 'notice', message });
}

/** A start that hangs says whom it waits for. */
function reportMissing(job: Job, hosts: readonly Host[], clock: JobClock): void {
  const missing = hosts.filter((host) => host.state.name === 'connecting').map((host) => host.name);
  const what = `${hosts.length - missing.length}/${hosts.length} hosts up`;
  job.emit({ type: 'waiting', what, missing, seconds: Math.round(clock.now() / 1000) });
}

function announce({ job, jobId, request, epoch }: Attempt, map: RankMap): void {
  if (epoch > 0) return;
  const hosts = map.hosts.map((host) => host.name);
  job.emit({
    type: 'job-started',
    jobId,
    ranks: map.ranks.length,
    hosts,
    programs: request.programs.map(({ argv }) => argv),
  });
}

/** The map, now that the hosts have said what they have. A job whose ranks do not fit fails. */
async function mapDetected(
  { allocation, hostsOf, request, reporter, job, epoch }: Attempt,
  hosts: readonly Host[],
): Promise<RankMap | null> {
  if (job.state.name !== 'connecting') return null;
  const hellos = new Map(hosts.flatMap((host) => (host.hello === null ? [] : [[host.name, host.hello] as const])));
  try {
    const map = mapRanks(withDetectedSlots(allocation, hellos), request, topologiesOf(hosts), hostsOf);
    if (map !== null && epoch === 0) await reporter.prepare?.(map);
    return map;
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    job.failures.fail(error.failure);
    return null;
  }
}

function topologiesOf(hosts: readonly Host[]): Topologies {
  const found = hosts.map(({ name, hello }) => [name, hello?.topology ?? null] as const);
  return new Map(found.flatMap(([name, topology]) => (topology === null ? [] : [[name, topology] as const])));
}

/** Binds each rank, and reports it where --report-bindings asks for that. A job whose ranks cannot be bound so fails. */
function bind({ request, job }: Attempt, map: RankMap, hosts: readonly Host[]): readonly Binding[] | null {
  const topologies = topologiesOf(hosts);
  try {
    const bindings = bindRanks(map, request, topologies);
    for (const [rank, binding] of request.reportBindings ? bindings.entries() : []) {
      job.emit({ type: 'binding', ...reportedBinding(binding, hostOf(map, rank), topologies), rank });
    }
    return bindings;
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    job.failures.fail(error.failure);
    return null;
  }
}

function reachHosts(hosts: readonly Host[]): ReachHost[] {
  const seenAs = hosts.map((host) => host.hello?.launcherAddress ?? null).find((address) => address !== null) ?? null;
  return hosts.map((host) => ({
    name: host.name,
    addresses: hostAddresses(host.slots, host.hello?.addresses ?? [], seenAs, hosts.length === 1),
    nics: host.hello?.nics ?? [],
    ask: (question) => host.ask(question),
  }));
}

function hostOf(map: RankMap, rank: number): string {
  return map.hosts[map.ranks[rank]?.host ?? -1]?.name ?? 'unknown host';
}
