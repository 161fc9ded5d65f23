/** InfiniBand and RoCE ports of a machine, for `ncclrun topo`: each with the GID that a job would choose, or why it would use none. */
import * as v from 'valibot';
import type { FoundVerbs, FoundVerbsPort } from '../../control/messages/nic.ts';
import { UnplannableError } from '../../control/planner/input/check.ts';
import type { Environment } from '../../control/planner/input/variables.ts';
import { chosenGid } from '../../control/planner/network/verbs.ts';
import { printableLine } from '../../control/printable.ts';
import { columns } from '../text/columns.ts';
import { networkSpeed } from '../../control/speed-text.ts';

interface GidChoice {
  readonly index: number;
  readonly gid: string;
  readonly version: 1 | 2 | null;
}

/** A port with what a job would do with it. */
export interface VerbsPortView extends Omit<FoundVerbsPort, 'gids'> {
  /** By which others would reach it; null: it is not used. */
  readonly gid: GidChoice | null;
  /** Why it is not: a clause without its end; null: it is. */
  readonly unusedBecause: string | null;
}

export function verbsViews({ ports }: FoundVerbs, environment: Environment): VerbsPortView[] {
  return ports.map(({ gids, ...port }) => {
    const choice = port.state === 'active' ? choiceOf({ ...port, gids }, environment) : port.state;
    return {
      ...port,
      gid: typeof choice === 'string' ? null : choice,
      unusedBecause: typeof choice === 'string' ? choice : null,
    };
  });
}

function choiceOf(port: FoundVerbsPort, environment: Environment): GidChoice | string {
  try {
    return chosenGid(port, environment);
  } catch (error) {
    // A variable that a job would refuse.
    if (error instanceof UnplannableError) return error.message;
    throw error;
  }
}

/** A line for each port; nothing where there are none. */
export function verbsText(views: readonly VerbsPortView[]): string {
  if (views.length === 0) return '';
  const head = ['card', 'port', 'link', 'rate', 'MTU', 'state', 'firmware', 'GID of jobs'];
  const rows = views.map(({ card, port, linkLayer, speedMbps, mtu, state, firmware, gid, unusedBecause }) => [
    card,
    String(port),
    linkLayer,
    speedMbps === 0 ? '-' : networkSpeed(speedMbps),
    String(mtu),
    state,
    firmware === '' ? '-' : firmware,
    gid === null ? `none: ${unusedBecause ?? ''}` : gidText(gid),
  ]);
  return `\n${columns([head, ...rows])}`;
}

/** "::ffff:10.8.0.1, index 3, RoCE v2" */
function gidText({ index, gid, version }: GidChoice): string {
  return [gid, `index ${index}`, ...(version === null ? [] : [`RoCE v${version}`])].join(', ');
}

const text = v.pipe(v.string(), v.maxLength(1000), v.transform(printableLine));
const count = v.pipe(v.number(), v.integer(), v.minValue(0));
const views: v.GenericSchema<unknown, VerbsPortView[]> = v.pipe(
  v.array(
    v.object({
      card: text,
      port: count,
      linkLayer: v.picklist(['InfiniBand', 'Ethernet']),
      speedMbps: count,
      mtu: count,
      pciPath: v.nullable(text),
      firmware: text,
      state: text,
      gid: v.nullable(v.object({ index: count, gid: text, version: v.nullable(v.picklist([1, 2])) })),
      unusedBecause: v.nullable(text),
    }),
  ),
  v.maxLength(4096),
);

/** Of another host's `--format json`; none where an older version printed it. */
export function readVerbsViews(value: unknown): VerbsPortView[] {
  const read = v.safeParse(views, value);
  return read.success ? read.output : [];
}
