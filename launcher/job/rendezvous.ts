/** The rendezvous of a job at its launcher: the hub of control/rendezvous with the planner and the job's events. */
import type { Clock } from '../../control/clock.ts';
import type { Frame } from '../../control/messages/frame.ts';
import type { MachineXml } from '../../control/messages/machine.ts';
import type { GivenPlan, HostMachine, PlannedHost } from '../../control/planner/input/input.ts';
import type { JobAggregators } from '../../control/planner/input/network-reduction.ts';
import { Planner } from '../../control/planner/planner.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import type { PendingGather } from '../../control/rendezvous/collector.ts';
import { Hub } from '../../control/rendezvous/hub.ts';
import type { LateReport } from '../../control/rendezvous/late.ts';
import { deliverPlan, planJoined } from '../../control/rendezvous/planning.ts';
import type { JobEvent } from '../model/event.ts';
import { Machines } from './machines.ts';

export interface RendezvousHubOptions {
  readonly jobId: string;
  readonly epoch: number;
  /** By host index. */
  readonly hosts: readonly Omit<PlannedHost, 'machine'>[];
  /** By rank: index of its host. */
  readonly rankHosts: readonly number[];
  /** Decides instead of the planner (--plan; readGivenPlan), or null. */
  readonly plan: GivenPlan | null;
  /** Those of the job; absent or null: it has none. */
  readonly aggregators?: JobAggregators | null;
  /** The ranks', as far as the planner looks at it. */
  readonly environment?: Environment;
  send(hostIndex: number, frame: Frame): void;
  onEvent(event: JobEvent): void;
  /** A rank ended that others wait for (failure 'rank-missing'); the ranks that wait have been notified. */
  onMissing?(rank: number, message: string): void;
  /** Evidence for the failure policy: `rank`, whose end comes next, failed after it had lost `suspect`. */
  onSuspected?(rank: number, suspect: number): void;
  /** Evidence likewise: a rank left others behind without a failure of its own. */
  onDeparted?(rank: number, message: string): void;
  /** A key waits this long before its missing ranks are named (default 10,000). */
  readonly lateAfterMs?: number;
  /** --init-timeout: ranks may wait this long for others under one key; null or absent: for ever. */
  readonly initTimeoutMs?: number | null;
  onTimedOut?(report: LateReport): void;
  /** Ranks wait for others under one key for long. */
  onLate?(report: LateReport): void;
  /** Default: the steady one. */
  readonly clock?: Clock;
}

/** Reads --plan FILE; throws a PlanError that names the file and the place in it. */
export async function readGivenPlan(path: string): Promise<GivenPlan> {
  const { readPlanFile } = await import('../../control/plan/file.ts');
  return { source: path, plan: readPlanFile(path) };
}

async function readMachine(
  machine: MachineXml,
  environment: Environment,
  notice: (message: string) => void,
): Promise<HostMachine> {
  const known = await import('../../control/planner/known-machine.ts');
  const dump = environment['NCCL_GRAPH_DUMP_FILE'] ?? '';
  return known.readMachine(machine, { environment, dumpGraphs: dump === '' ? null : dump, problem: notice });
}

/** NCCL_DEBUG asks for what usually nobody needs to know. */
function wantsDetails(environment: Environment = {}): boolean {
  return ['INFO', 'TRACE'].includes(environment['NCCL_DEBUG']?.toUpperCase() ?? '');
}

export class RendezvousHub {
  readonly #options: RendezvousHubOptions;
  readonly #hub: Hub;
  readonly #planner: Planner;
  readonly #machines: Machines;

  constructor(options: RendezvousHubOptions) {
    this.#options = options;
    const { epoch, hosts, rankHosts, lateAfterMs, clock } = options;
    const notice = (message: string): void => options.onEvent({ type: 'notice', time: Date.now(), message });
    const known = new Set<string>();
    const onNics = (sentence: string): void => {
      const type = wantsDetails(options.environment) ? 'notice' : 'network';
      if (!known.has(sentence)) options.onEvent({ type, time: Date.now(), message: sentence });
      known.add(sentence);
    };
    const onIdle = (sentence: string): void => {
      if (!known.has(sentence)) notice(sentence);
      known.add(sentence);
    };
    this.#planner = new Planner(options.plan, options.environment, onNics, onIdle);
    this.#machines = new Machines({
      read: (machine) => readMachine(machine, options.environment ?? {}, notice),
      send: (host, frame) => options.send(host, frame),
      unreadable: (host, reason) => notice(`${hosts[host]?.name}: its topology cannot be read: ${reason}`),
    });
    this.#hub = new Hub({
      epoch,
      hostNames: hosts.map((host) => host.name),
      rankHosts,
      send: (host, frame) => options.send(host, frame),
      join: (gather) => this.#join(gather),
      late: (report) => {
        const { what, missing, seconds } = report;
        options.onEvent({ type: 'waiting', time: Date.now(), what, missing, seconds });
        options.onLate?.(report);
      },
      missing: (rank, message) => options.onMissing?.(rank, message),
      suspected: (rank, suspect) => options.onSuspected?.(rank, suspect),
      departed: (rank, message) => options.onDeparted?.(rank, message),
      timedOut: (report) => options.onTimedOut?.(report),
      initTimeoutMs: options.initTimeoutMs ?? null,
      ...(clock === undefined ? {} : { clock }),
      ...(lateAfterMs === undefined ? {} : { lateAfterMs }),
    });
  }

  /** A rendezvous frame of an agent (merged, routed, left), or what its host is. Throws ProtocolError if it is malformed. */
  receive(hostIndex: number, frame: Frame): void {
    if (!this.#machines.receive(hostIndex, frame)) this.#hub.receive(hostIndex, frame);
  }

  /** `phrase` follows the rank's name: "exited with status 3", "was killed by SIGKILL". */
  rankEnded(rank: number, phrase: string): void {
    const host = this.#options.hosts[this.#options.rankHosts[rank] ?? -1];
    this.#hub.rankEnded(rank, `rank ${rank} (${host?.name ?? 'unknown host'}) ${phrase}`);
  }

  /** `phrase` follows the name of each of its ranks: "was on node1, which was lost". */
  hostLost(hostIndex: number, phrase: string): void {
    this.#machines.hostLost(hostIndex);
    this.#hub.hostLost(hostIndex, phrase);
  }

  /** Keys and communicators that are remembered; 0 after the last has ended. */
  get size(): number {
    return this.#hub.size;
  }

  /** Ends timers; nothing is sent any more. */
  close(): void {
    this.#hub.close();
  }

  #join(gather: PendingGather): void {
    const { hosts, rankHosts, aggregators = null } = this.#options;
    const { key, size } = gather;
    const hostAt = (host: number): PlannedHost => ({
      ...(hosts[host] ?? { name: `host ${host}`, address: '', cores: 1 }),
      machine: this.#machines.of(host),
    });
    const planned = planJoined(gather, hostAt, this.#planner, size === rankHosts.length, aggregators);
    deliverPlan(key, planned, (host, frame) => this.#options.send(host, frame));
    this.#options.onEvent({ type: 'communicator', time: Date.now(), ranks: size, hosts: planned.hosts.length });
  }
}
