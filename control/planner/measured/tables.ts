/** What was measured on a host, for the planner. Loaded only where there is a table, or one is to be made. */
import type { HostHardware } from '../../messages/hardware.ts';
import { areMessagesBetweenGpuHosts } from '../../plan/possible.ts';
import type { CollectiveName, DeviceName, Variant } from '../../plan/types.ts';
import { decisionSituation, gpuBudget } from '../device/gpus.ts';
import { variantsOnGpus } from '../device/gpu-tuning.ts';
import { variantOnHost } from '../device/host-tuning.ts';
import { rankNumbersByHost } from '../input/input.ts';
import { NO_REDUCTION, reductionKey } from '../input/network-reduction.ts';
import type { HostTables, PlanInput, PlannedShape } from '../input/input.ts';
import type { Decisions } from '../plan.ts';
import type { Preferences } from '../input/preferences.ts';
import type { NetworkFacts } from '../network/network.ts';
import { isPossible, MAX_CHANNELS_ON_HOSTS, measuringRows } from './candidates.ts';
import { termsOf, UNKNOWN_RATES } from '../device/between-terms.ts';
import type { Corrections } from '../tuning/between-costs.ts';
import { correctionsOf } from './corrections.ts';
import { countByLayout, hashOf, inOrder, layoutOf, tablePath } from './key.ts';
import type { BetweenHosts, TableKey } from './key.ts';
import { measuredRows } from './rows.ts';
import { findTable, findTablesOfKind } from './store.ts';
import type { FoundTable } from './store.ts';
import { TableError } from './table.ts';

/** Hardware names that a host reports; null: unknown. */
export interface HardwareNames {
  processor(): string | null;
  /** By bus id, hexadecimal. */
  gpu(busId: string): string | null;
  driver(): string | null;
}

/** A communicator's variants are those of a table, or are to be measured. */
export interface TableUse {
  readonly ranks: number;
  readonly file: string;
  /** A TableKey as JSON. */
  readonly key: string;
  readonly measured: boolean;
}

interface TablesOptions {
  readonly directory: string;
  readonly names: HardwareNames;
  /** Plans are for measuring. */
  readonly measures: boolean;
  readonly used: (use: TableUse) => void;
  /** Receives the error if a file is no valid table. */
  readonly problem: (message: string) => void;
}

export class Tables implements HostTables {
  readonly #options: TablesOptions;

  constructor(options: TablesOptions) {
    this.#options = options;
  }

  refine(planned: Decisions, shape: PlannedShape): Decisions {
    const { input, channelSet, preferences, network } = shape;
    const ranks = input.peers.length;
    if (ranks < 2) return planned;
    const { device } = planned;
    const channels = maxChannels(planned, preferences);
    const situation = decisionSituation(channelSet, input, channels);
    const isBetweenGpuHosts = device === 'cuda' && situation.hosts > 1;
    const pairChannels = isBetweenGpuHosts ? (planned.gpuBuffers?.pairChannels ?? channels) : channels;
    const { copyChannels } = planned;
    const reduction = network?.reduction ?? NO_REDUCTION;
    const context = { device, situation, reduction, ranks, channels, pairChannels, copyChannels };
    const variantOf = (collective: CollectiveName, variant: Variant): Variant =>
      isBetweenGpuHosts
        ? {
            ...variant,
            asMessages: areMessagesBetweenGpuHosts(collective),
            requires: variant.protocol === 'll' ? ['hostSlots'] : variant.requires,
          }
        : variant;
    if (this.#options.measures) {
      const key = this.#keyOf(device, shape);
      const file = tablePath(this.#options.directory, key);
      this.#options.used({ ranks, file, key: JSON.stringify(key), measured: false });
      const tuning = measuringRows(planned.tuning, { ...context, minChannels: 1 }, variantOf);
      return { ...planned, channels: channelSet.channels(channels), tuning };
    }
    const found = this.find(device, shape);
    if (found === null) return planned;
    this.#options.used({ ranks, file: found.file, key: JSON.stringify(found.table.key), measured: true });
    const tuning = measuredRows(planned.tuning, found.table, {
      preferences,
      channels,
      has: (collective, variant) => isPossible(collective, variant, context),
      variantOf: (collective, variant) =>
        variantOf(
          collective,
          device === 'cuda' ? variantsOnGpus.make(variant, variant, ranks) : variantOnHost(variant, variant.channels),
        ),
    });
    const needed = tuning.reduce(
      (max, { variants }) => Math.max(max, ...variants.map((variant) => variant.channels)),
      1,
    );
    return { ...planned, channels: channelSet.channels(Math.max(planned.channels.length, needed)), tuning };
  }

  /** null: there is no table for such ranks, or none that can be read. */
  find(device: DeviceName, shape: Omit<PlannedShape, 'preferences'>): FoundTable | null {
    try {
      return findTable(this.#options.directory, this.#keyOf(device, shape));
    } catch (error) {
      if (!(error instanceof TableError)) throw error;
      this.#options.problem(`the table of measured times is ignored: ${error.message}; ncclrun tune makes a new one`);
      return null;
    }
  }

  corrections(device: DeviceName, shape: PlannedShape): Corrections {
    const { network, preferences } = shape;
    if (network === null || this.#options.measures) return {};
    const key = this.#keyOf(device, shape);
    const hosts = shape.input.hosts.length;
    const [nearest] = findTablesOfKind(this.#options.directory, key)
      .flatMap((table) => (table.key.between === undefined ? [] : [{ table, between: table.key.between }]))
      .toSorted((one, other) => distance(one.between.hosts, hosts) - distance(other.between.hosts, hosts));
    if (nearest === undefined) return {};
    const { table, between } = nearest;
    const extent = countByLayout(between.layout);
    const { channels, pairChannels } =
      device === 'cuda'
        ? gpuBudget({ extent, limit: Infinity, isLater: false }, preferences).budget
        : { channels: network.rails, pairChannels: 1 };
    const ranksOnCores = network.isOneMachine ? extent.ranks : extent.maxRanks;
    // What reduced there in another way says nothing of this way.
    const isAlike = between.reduction === reductionKey(network.reduction);
    const terms = termsOf(device, UNKNOWN_RATES, {
      network: isAlike ? network : { ...network, reduction: NO_REDUCTION },
      corrections: {},
      channels,
      pairChannels,
      load: device === 'cuda' ? 1 : ranksOnCores / (table.key.cores ?? 1),
    });
    return correctionsOf(table, between, terms);
  }

  #keyOf(device: DeviceName, { input, channelSet, network }: Omit<PlannedShape, 'preferences'>): TableKey {
    const { hosts, peers } = input;
    const { cluster } = channelSet;
    // However many channels the user lets it have, it is the same machine. Jobs on several hosts know a topology only if a file has it.
    const isKnown = cluster !== null && network === null;
    const { linkRate: _, ...paths } = decisionSituation(channelSet, { hosts, peers }, 0);
    const topology = isKnown ? hashOf(paths) : null;
    const onProcessors = device === 'host';
    const [gpu] = (isKnown ? cluster.shapes[0]?.routes.machine.gpus : undefined) ?? [];
    const names = network === null ? ownNames(this.#options.names, peers) : namesOfAll(hosts);
    return inOrder({
      device,
      ranks: peers.length,
      topology,
      processor: onProcessors ? names.processor : null,
      cores: onProcessors ? Math.min(...hosts.map(({ cores }) => cores)) : null,
      gpu: onProcessors ? null : names.gpu,
      computeCapability: onProcessors ? null : (gpu?.computeCapability ?? null),
      driver: onProcessors ? null : names.driver,
      ...(network === null ? {} : { between: betweenHosts(input, network) }),
    });
  }
}

function ownNames(names: HardwareNames, peers: PlanInput['peers']): HostHardware {
  return { processor: names.processor(), gpu: names.gpu(peers[0]?.busId ?? ''), driver: names.driver() };
}

/** Of unlike hosts each name once. */
function namesOfAll(hosts: PlanInput['hosts']): HostHardware {
  const joined = (name: keyof HostHardware): string | null => {
    const found = new Set(hosts.map(({ hardware }) => hardware?.[name] ?? ''));
    return found.has('') ? null : [...found].toSorted((one, other) => (one < other ? -1 : 1)).join(', ');
  };
  return { processor: joined('processor'), gpu: joined('gpu'), driver: joined('driver') };
}

function betweenHosts(input: PlanInput, network: NetworkFacts): BetweenHosts {
  const { name, rails, speedMbps, isOneMachine, sockets, socketThreads } = network;
  const reduction = reductionKey(network.reduction);
  const layout = layoutOf(rankNumbersByHost(input).map((ranks) => ranks.length));
  return {
    hosts: input.hosts.length,
    layout,
    network: name,
    nics: rails,
    speedMbps,
    isOneMachine,
    sockets,
    socketThreads,
    ...(reduction === undefined ? {} : { reduction }),
  };
}

/** Of numbers of hosts: twice as many are as far as half as many. */
function distance(one: number, other: number): number {
  return Math.abs(Math.log2(one / other));
}

/** On processors a table may have more than the planner would take. */
function maxChannels({ device, channels }: Decisions, preferences: Preferences): number {
  if (device === 'cuda') return channels.length;
  return Math.min(Math.max(channels.length, MAX_CHANNELS_ON_HOSTS), preferences.channels.max);
}
