/** The planner's environment variables, NCCL's and ours. */
import { DEFAULT_SHAPE } from './cluster/host-shape.ts';
import type { ShapeOptions } from './cluster/host-shape.ts';
import type { ChannelLimits } from './input/limits.ts';
import { channelLimits } from './input/preferences.ts';
import { valueOf, wholeNumber } from './input/variables.ts';
import type { Environment } from './input/variables.ts';
import { DEFAULT_ROUTES } from './machine/routes.ts';
import type { RouteOptions } from './machine/routes.ts';
import { levelOf } from './machine/level.ts';
import type { PathType } from './machine/path.ts';

/** What the planner's environment variables ask for. */
export interface PlannerVariables {
  readonly routes: RouteOptions;
  readonly shape: ShapeOptions;
  readonly limits: ChannelLimits;
  /** All planner variables that are set, also those of preferences.ts and of files: NAME=value, sorted by name. */
  readonly settings: readonly string[];
}

const NAMES = [
  'NCCL_ALGO',
  'NCCL_COLLNET_ENABLE',
  'NCCL_COLLNET_NODE_THRESHOLD',
  'NCCL_CROSS_NIC',
  'NCCL_GRAPH_FILE',
  'NCCL_MAX_NCHANNELS',
  'NCCL_MIN_NCHANNELS',
  'NCCL_NET_GDR_LEVEL',
  'NCCL_NET_GDR_READ',
  'NCCL_NVB_DISABLE',
  'NCCL_P2P_DISABLE',
  'NCCL_P2P_LEVEL',
  'NCCL_PROTO',
  'NCCL_PXN_DISABLE',
  'NCCLRUN_MAX_SMS',
] as const;
type Name = (typeof NAMES)[number];

/** Throws an UnplannableError for a value that means nothing. */
export function plannerVariables(environment: Environment): PlannerVariables {
  const value = (name: Name): string | null => valueOf(environment, name);
  const number = (name: Name, min: number, max: number): number | null => wholeNumber(environment, name, min, max);
  const level = (name: Name): PathType | null => {
    const text = value(name);
    return text === null ? null : levelOf(name, text);
  };
  const isSet = (name: Name): boolean => number(name, 0, 1) === 1;
  const read = number('NCCL_NET_GDR_READ', 0, 1);
  return {
    routes: {
      ...DEFAULT_ROUTES,
      p2pLevel: isSet('NCCL_P2P_DISABLE') ? 'LOC' : level('NCCL_P2P_LEVEL'),
      gpuDirectLevel: level('NCCL_NET_GDR_LEVEL'),
      gpuDirectRead: read === null ? null : read === 1,
      throughGpus: !isSet('NCCL_NVB_DISABLE'),
      throughOtherNics: !isSet('NCCL_PXN_DISABLE'),
    },
    shape: { crossNic: crossNicOf(number('NCCL_CROSS_NIC', 0, 2)), graphs: null },
    limits: channelLimits(environment),
    settings: NAMES.flatMap((name) => (value(name) === null ? [] : [`${name}=${value(name)}`])),
  };
}

function crossNicOf(value: number | null): ShapeOptions['crossNic'] {
  if (value === null) return DEFAULT_SHAPE.crossNic;
  return value === 0 || value === 1 ? value : 2;
}
