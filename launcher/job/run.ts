/** A job: allocation → mapping → agents → ranks → result. */
import type { Countdown } from '../../control/clock.ts';
import { withDetectedSlots } from '../allocation/detected.ts';
import { type Binding, bindRanks, reportedBinding } from '../mapping/bind.ts';
import { mapRanks, type Topologies } from '../mapping/map-ranks.ts';
import { allocateJob, type HostsOfProgram } from '../mapping/program-hosts.ts';
import { installationRoot, installedVersion } from '../remote/local.ts';
import type { StartAgent } from '../remote/connection.ts';
import { KeptAgents } from '../remote/kept.ts';
import { agentStarter } from '../remote/start.ts';
import type { Failure } from './failure.ts';
import { FailureError } from './failure-error.ts';
import { FailurePolicy } from './failure-policy.ts';
import { HangWatch } from './hang.ts';
import { Host } from './host.ts';
import { Job } from './job.ts';
import { commonOrder, hostAddress, masterEnvironment, missingExports, orderedProgram, placementOf } from './order.ts';
import { JobClock } from './job-clock.ts';
import type { JobParts } from './job-parts.ts';
import { PhaseClock } from './phase-clock.ts';
import { randomBytes } from '../../control/random-bytes.ts';
import { differences } from './preflight.ts';
import { readGivenPlan, RendezvousHub } from './rendezvous.ts';
import { Restarts } from './restarts.ts';
import { jobResult } from './result.ts';
import { type SignalActions, SignalPolicy } from './signals.ts';
import { hasStdin } from './stdin-flow.ts';
import { Stopping } from './stopping.ts';
import { isTerminal } from './terminal.ts';
import type { Allocation, HostSlots, JobRequest, JobResult, RankMap, Reporter } from './types.ts';

export interface JobOptions {
  readonly request: JobRequest;
  readonly reporter: Reporter;
}

const JOB_ID_BYTES = 6;
const MISSING_TOLD_MS = 5000;
/** Who leaves at once waits no longer for a reader of the output that is slow. */
const FAREWELL_MS = 1000;

type GivenPlan = Awaited<ReturnType<typeof readGivenPlan>>;

/**
 * Runs the job to its end and tells the reporter of everything, the result last. Rejects with a FailureError only for what is
 * wrong before there is a job: hostfile, slots, plan file.
 */
export async function runJob({ request, reporter }: JobOptions): Promise<JobResult> {
  const phases = new PhaseClock();
  const clock = new JobClock();
  const { allocation, hostsOf } = allocateJob(request);
  const early = mapRanks(allocation, request, null, hostsOf);
  const plan = request.planFile === null ? null : await givenPlan(request.planFile);
  const misfit = planMisfit(plan, early);
  if (misfit !== null) throw new FailureError(misfit);
  const asked = early?.hosts ?? allocation.hosts;
  const startAgent = await agentStarter(request.rsh, request.stage, asked);
  const agents = new KeptAgents(startAgent);
  const restarts = new Restarts(request);
  const readsStdin = stdinReader(request);
  const noReader = noSuchReader(request, early);
  if (noReader !== null) throw new FailureError(noReader);
  if (early !== null) await reporter.prepare?.(early);
  const begin = (): Attempt => beginAttempt({ request, reporter, phases, clock, readsStdin }, asked.length);
  let now = begin();
  const jobId = randomBytes(JOB_ID_BYTES).toString('hex');
  const left = Promise.withResolvers<void>();
  const stopping = new Stopping((ranks) => now.job.stop(ranks));
  const actions: SignalActions = {
    interrupt() {
      restarts.giveUp();
      now.job.interrupt();
    },
    terminate(signal) {
      restarts.giveUp();
      now.job.terminate(signal);
    },
    leave() {
      now.job.leave();
      left.resolve();
    },
    forward: (signal) => now.job.forward(signal),
    ignore: (signal) => now.job.ignore(signal),
    stop: (ranks) => stopping.begin(ranks),
    resume(ranks) {
      stopping.end();
      now.job.resume(ranks);
    },
  };
  const signals = new SignalPolicy(actions, request.forwardSignals);
  signals.install();
  const limits = startLimits(request, () => now.job, clock);
  try {
    for (;;) {
      const { job, policy } = now;
      const map = await startRanks({
        request,
        reporter,
        job,
        jobId,
        epoch: restarts.done,
        phases,
        clock,
        allocation,
        hostsOf,
        early,
        asked,
        startAgent: agents.start,
        plan,
        readsStdin,
      });
      const closed = job.over.then(() => Promise.all(job.hosts.map((host) => host.close())));
      await Promise.race([left.promise, closed]);
      const failure = policy.decide();
      if (restarts.another(failure) && failure !== null) {
        job.emit({ type: 'restart', attempt: restarts.done, most: request.maxRestarts, failure });
        now = begin();
        continue;
      }
      await Promise.race([left.promise, agents.close()]);
      const result = jobResult({ jobId, job, map, policy, phases, restarts: restarts.done });
      job.emit({ type: 'job-ended', ok: result.ok, reason: result.reason, exitCode: result.exitCode });
      await Promise.race([reporter.result(result), left.promise.then(() => farewell())]);
      return result;
    }
  } finally {
    for (const limit of limits) limit.cancel();
    signals.remove();
  }
}

/** One start of all ranks. */
interface Attempt {
  readonly job: Job;
  readonly policy: FailurePolicy;
}

function beginAttempt(parts: Omit<JobParts, 'policy' | 'hangs'>, hosts: number): Attempt {
  const policy = new FailurePolicy();
  const hangs: HangWatch = new HangWatch({
    hosts: () => job.hosts.filter(({ state }) => state.name === 'running').map(({ name }) => name),
    send: (name, frame) => job.hosts.find((host) => host.name === name)?.send(frame),
    hostOf: (rank) => job.hostOf(rank),
    found(hang) {
      job.emit({ type: 'hang', ...hang });
      if (parts.request.onHang === 'abort' || parts.request.onHang === 'restart') job.fail({ type: 'hang', ...hang });
    },
  });
  const job = new Job({ ...parts, policy, hangs }, hosts);
  return { job, policy };
}

interface Start {
  readonly request: JobRequest;
  readonly reporter: Reporter;
  readonly job: Job;
  readonly jobId: string;
  /** Attempts before this one. */
  readonly epoch: number;
  readonly phases: PhaseClock;
  readonly clock: JobClock;
  readonly allocation: Allocation;
  readonly hostsOf: readonly HostsOfProgram[];
  /** Null where it depends on what the hosts say of themselves. */
  readonly early: RankMap | null;
  readonly asked: readonly HostSlots[];
  readonly startAgent: StartAgent;
  readonly plan: GivenPlan | null;
  readonly readsStdin: (rank: number) => boolean;
}

/** Connects to every host and starts the ranks. Null if the job ended before there was a map. */
async function startRanks(start: Start): Promise<RankMap | null> {
  const { request, job, jobId, epoch, phases, clock, early, asked, startAgent, plan, readsStdin } = start;
  const programs = request.programs.map((program) => orderedProgram(program, process.env));
  const version = installedVersion();
  const common = commonOrder({
    request,
    jobId,
    version,
    installation: installationRoot,
    hostCount: asked.length,
    epoch,
  });
  const { mergeStderr, isolateGpus } = request;
  const facts = { programs, readsStdin, terminal: isTerminal(0), mergeStderr, isolateGpus };
  const known = common.topology ? null : early; // nothing that the hosts have to say changes it
  const hosts = asked.map((slots, index) => {
    const placement = known === null ? null : placementOf(known, index, facts);
    return new Host(slots, { ...common, hostName: slots.name, placement }, job.handler);
  });
  if (early !== null) announce(start, early);
  for (const name of missingExports(
    request.programs.flatMap((program) => program.exports),
    process.env,
  )) {
    job.emit({ type: 'notice', message: `-x ${name}: it is not set here, so the ranks do not get it` });
  }
  phases.enter('connect');
  job.emit({ type: 'phase', phase: 'connect' });
  job.connect(hosts, startAgent);
  const patience = setInterval(() => tellMissing(job, hosts, clock), MISSING_TOLD_MS);
  await job.allUp;
  clearInterval(patience);
  tellDifferences(job, hosts);

  const map = early ?? (await mapDetected(start, hosts));
  if (map === null || job.state.name !== 'connecting') return map;
  const misfit = planMisfit(plan, map) ?? noSuchReader(request, map);
  if (misfit !== null) {
    job.fail(misfit);
    return null;
  }
  if (early === null) announce(start, map);
  const bindings = common.topology ? bind(start, map, hosts) : [];
  if (bindings === null) return null;
  phases.enter('spawn');
  job.emit({ type: 'phase', phase: 'spawn' });
  const used = map.hosts.flatMap((slots) => hosts.filter((host) => host.slots.name === slots.name));
  const addresses = addressesOf(used);
  const master = masterEnvironment(map, addresses, used);
  const starts = used.map((_, index) => ({
    placement: known === null ? placementOf(map, index, facts, bindings) : null,
    environment: master,
  }));
  const { initTimeoutSeconds: limit } = request;
  const hub = () =>
    new RendezvousHub({
      jobId,
      epoch: common.epoch,
      hosts: used.map((host, index) => ({
        name: host.name,
        address: addresses[index] ?? '127.0.0.1',
        cores: host.hello?.cores ?? 1,
      })),
      rankHosts: map.ranks.map((rank) => rank.host),
      plan,
      environment: { ...process.env, ...programs[0]?.environment },
      send: (index, frame) => used[index]?.send(frame),
      onEvent: (event) => job.emit(event),
      onMissing: (rank, message) => job.missing(rank, message),
      onSuspected: (rank, suspect) => job.suspect(rank, suspect),
      onDeparted: (rank, message) => job.departed(rank, message),
      initTimeoutMs: limit === null ? null : limit * 1000,
      clock,
      onTimedOut: ({ what, missing, ranks }) => job.joinedTooLate({ seconds: limit ?? 0, what, missing }, ranks),
    });
  job.spawn(map, used, starts, hub);
  return map;
}

/** Hosts that differ make the whole job slow, or fail, later. */
function tellDifferences(job: Job, hosts: readonly Host[]): void {
  const known = hosts.flatMap(({ preflight }) => preflight ?? []);
  if (known.length < 2) return;
  for (const message of differences(known)) job.emit({ type: 'notice', message });
}

/** A start that hangs says whom it waits for. */
function tellMissing(job: Job, hosts: readonly Host[], clock: JobClock): void {
  const missing = hosts.filter((host) => host.state.name === 'connecting').map((host) => host.name);
  const what = `${hosts.length - missing.length}/${hosts.length} hosts up`;
  job.emit({ type: 'waiting', what, missing, seconds: Math.round(clock.now() / 1000) });
}

function announce({ job, jobId, request, epoch }: Start, map: RankMap): void {
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
  { allocation, hostsOf, request, reporter, job, epoch }: Start,
  hosts: readonly Host[],
): Promise<RankMap | null> {
  if (job.state.name !== 'connecting') return null;
  const said = new Map(hosts.flatMap((host) => (host.hello === null ? [] : [[host.name, host.hello] as const])));
  try {
    const map = mapRanks(withDetectedSlots(allocation, said), request, topologiesOf(hosts), hostsOf);
    if (map !== null && epoch === 0) await reporter.prepare?.(map);
    return map;
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    job.fail(error.failure);
    return null;
  }
}

function topologiesOf(hosts: readonly Host[]): Topologies {
  const found = hosts.map(({ name, hello }) => [name, hello?.topology ?? null] as const);
  return new Map(found.flatMap(([name, topology]) => (topology === null ? [] : [[name, topology] as const])));
}

/** Who is bound where, told where --report-bindings asks for it. A job whose ranks cannot be bound so fails. */
function bind({ request, job }: Start, map: RankMap, hosts: readonly Host[]): readonly Binding[] | null {
  const topologies = topologiesOf(hosts);
  try {
    const bindings = bindRanks(map, request, topologies);
    for (const [rank, binding] of request.reportBindings ? bindings.entries() : []) {
      job.emit({ type: 'binding', ...reportedBinding(binding, hostOf(map, rank), topologies), rank });
    }
    return bindings;
  } catch (error) {
    if (!(error instanceof FailureError)) throw error;
    job.fail(error.failure);
    return null;
  }
}

/** How the hosts reach each other, by host. */
function addressesOf(hosts: readonly Host[]): string[] {
  const seenAs = hosts.map((host) => host.hello?.launcherAddress ?? null).find((address) => address !== null) ?? null;
  return hosts.map(({ slots, hello }) => hostAddress(slots, hello?.addresses ?? [], seenAs, hosts.length === 1));
}

function hostOf(map: RankMap, rank: number): string {
  return map.hosts[map.ranks[rank]?.host ?? -1]?.name ?? 'unknown host';
}

async function givenPlan(path: string): Promise<GivenPlan> {
  try {
    return await readGivenPlan(path);
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new FailureError({ type: 'usage', message, remedy: 'check the file given to --plan' }, { cause: error });
  }
}

/** A given plan is for so many ranks; null where it fits, or the number is not known yet. */
function planMisfit(given: GivenPlan | null, map: RankMap | null): Failure | null {
  if (given === null || map === null || given.plan.peers.length === map.ranks.length) return null;
  const { source, plan } = given;
  const message = `${source}: is for ${plan.peers.length} ranks, this job has ${map.ranks.length}`;
  return { type: 'usage', message, remedy: `start ${plan.peers.length} ranks, or leave --plan out` };
}

/** Who reads our stdin, if there is anything to read. */
function stdinReader({ stdin }: JobRequest): (rank: number) => boolean {
  if (stdin.type === 'none' || !hasStdin()) return () => false;
  if (stdin.type === 'all') return () => true;
  return (rank) => stdin.ranges.some(({ first, last }) => rank >= first && rank <= last);
}

/** --stdin names a rank that does not exist; null where all do, or their number is not known yet. */
function noSuchReader({ stdin }: JobRequest, map: RankMap | null): Failure | null {
  if (stdin.type !== 'ranks' || map === null) return null;
  const size = map.ranks.length;
  const beyond = stdin.ranges.find(({ last }) => last >= size);
  if (beyond === undefined) return null;
  const remedy = `ranks are 0${size > 1 ? ` to ${size - 1}` : ' alone'}; or write --stdin all`;
  return { type: 'usage', message: `--stdin names rank ${beyond.last}, and there is none`, remedy };
}

/** --timeout and --spawn-timeout. */
function startLimits(
  { timeoutSeconds, spawnTimeoutSeconds }: JobRequest,
  job: () => Job,
  clock: JobClock,
): Countdown[] {
  const limits: Countdown[] = [];
  const start = (seconds: number | null, end: (seconds: number) => void): void => {
    if (seconds !== null) limits.push(clock.after(seconds * 1000, () => end(seconds)));
  };
  start(timeoutSeconds, (seconds) => job().fail({ type: 'timeout', seconds }));
  start(spawnTimeoutSeconds, (seconds) => {
    const late = job().late();
    if (late.length > 0) job().fail({ type: 'spawn-timeout', seconds, late });
  });
  return limits;
}

function farewell(): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, FAREWELL_MS);
  });
}
