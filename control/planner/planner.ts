/** A planner that remembers what it decided: programs make many communicators of few shapes. */
import { isCollnet } from '../plan/possible.ts';
import type { CommPlan } from '../plan/types.ts';
import { RecentMap } from '../rendezvous/memory.ts';
import { checkDevices, checkGiven, UnplannableError } from './input/check.ts';
import type { GivenPlan, PlanInput } from './input/input.ts';
import { isLater } from './device/gpu-buffers.ts';
import { whyIdle } from './tuning/idle-aggregators.ts';
import { bindNetwork, describeNics, networkFacts, nicsBetween } from './network/network.ts';
import type { NicsBetween } from './network/network.ts';
import { bindChannels, bindPlan, decide } from './plan.ts';
import type { Decisions } from './plan.ts';
import { preferencesFrom } from './input/preferences.ts';
import type { Preferences } from './input/preferences.ts';
import type { Environment } from './input/variables.ts';

const REMEMBERED_SHAPES = 64;

export class Planner {
  readonly #decided = new RecentMap<Decisions>(REMEMBERED_SHAPES);
  readonly #given: GivenPlan | null;
  readonly #environment: Environment;
  readonly #onNics: (sentence: string) => void;
  readonly #onIdle: (sentence: string) => void;
  #preferences: Preferences | null = null;

  /**
   * `given` decides every communicator with as many ranks as it has, and on its device; in the environment the user may prefer algorithms. `onNics` receives
   * which NICs a communicator of several hosts uses, and why, `onIdle` why one of the whole job leaves the job's aggregators idle: sentences without
   * their ends.
   */
  constructor(
    given: GivenPlan | null,
    environment: Environment = {},
    onNics: (sentence: string) => void = () => undefined,
    onIdle: (sentence: string) => void = () => undefined,
  ) {
    this.#given = given;
    this.#environment = environment;
    this.#onNics = onNics;
    this.#onIdle = onIdle;
  }

  /** `wholeJob`: the communicator has all ranks of the job, so a given plan must fit it. Throws UnplannableError, TopologyError. */
  plan(input: PlanInput, wholeJob: boolean): CommPlan {
    checkDevices(input, this.#environment['NCCL_MULTI_RANK_GPU_ENABLE'] === '1');
    const between = nicsBetween(input, this.#environment);
    if (between !== null) this.#onNics(describeNics(input, between));
    const decisions = this.#givenFor(input, wholeJob) ?? this.#remembered(input, between);
    if (wholeJob) this.#sayIfIdle(input, decisions);
    return bindPlan(input, decisions, bindNetwork(input, between, decisions, this.#environment));
  }

  #givenFor(input: PlanInput, wholeJob: boolean): Decisions | null {
    if (this.#given === null) return null;
    const { source, plan } = this.#given;
    const isMeant = wholeJob || plan.device === input.peers[0]?.device;
    if (plan.peers.length === input.peers.length && isMeant) {
      checkGiven(this.#given, input);
      return { ...plan, channels: bindChannels(input, plan.channels) };
    }
    if (!wholeJob) return null;
    throw new UnplannableError(
      `the plan in ${source} is for ${plan.peers.length} ranks, this communicator has ${input.peers.length}: give a plan for ` +
        `${input.peers.length} ranks, or leave --plan out`,
    );
  }

  #sayIfIdle({ hosts }: PlanInput, { situation, tuning }: Decisions): void {
    const isUsed = tuning.some(({ variants }) => variants.some(({ algorithm }) => isCollnet(algorithm)));
    if (isUsed || situation === undefined) return;
    const nameOf = (host: number): string => hosts[host]?.name ?? `host ${host}`;
    const why = whyIdle(situation, this.#preferencesOf(), nameOf);
    if (why !== null) this.#onIdle(`--collnet: the ranks reduce without the aggregators: ${why}`);
  }

  #preferencesOf(): Preferences {
    this.#preferences ??= preferencesFrom(this.#environment);
    return this.#preferences;
  }

  #remembered(input: PlanInput, between: NicsBetween | null): Decisions {
    const network = between === null ? null : networkFacts(input, between, this.#environment);
    const shape = `${JSON.stringify(network)}/${shapeOf(input)}`;
    const known = this.#decided.get(shape);
    if (known !== undefined) return known;
    const decisions = decide(input, this.#preferencesOf(), network);
    this.#decided.set(shape, decisions);
    return decisions;
  }
}

/** Everything that decide() looks at but the network, as text. */
function shapeOf({ hosts, peers }: PlanInput): string {
  const kinds = new Map<string, number>();
  const hasTables = (hosts[0]?.tables ?? null) !== null;
  const machines = hosts.map(({ cores, machine, hardware }) => {
    const key = machine?.key ?? '';
    const kind = kinds.get(key) ?? kinds.size;
    kinds.set(key, kind);
    return hasTables ? `${cores} ${kind} ${JSON.stringify(hardware)}` : `${cores} ${kind}`;
  });
  const hostIndices = Buffer.from(Uint32Array.from(peers, (peer) => peer.host).buffer).toString('latin1');
  const onGpus = peers[0]?.device === 'cuda';
  const memory = onGpus && isLater(peers) ? 'later' : '';
  const gpus = onGpus ? peers.map(({ busId, smCount, maxChannels }) => `${busId} ${smCount} ${maxChannels}`) : [];
  return `${onGpus}/${machines.join(',')}/${hostIndices}/${gpus.join(',')}/${memory}/${[...kinds.keys()].join('/')}`;
}
