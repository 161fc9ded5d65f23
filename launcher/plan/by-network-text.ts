/** All-reduces by the network, for people. */
import { networkSpeed } from '../../control/speed-text.ts';
import { foldNames } from '../text/fold-names.ts';
import { columns } from '../text/columns.ts';

import type { ByNetworkView, RangeView, TimesView } from './by-network.ts';

/** With an empty line behind it. */
export function byNetworkText(view: ByNetworkView | null): string {
  if (view === null) return '';
  const title = `all_reduce by the network: ${whoReduces(view)}`;
  const rows = [['up to bytes', 'taken', 'at bytes', 'collnet µs', 'otherwise µs', 'what limits collnet there']];
  return `${title}\n${columns([...rows, ...view.ranges.map(rangeRow)])}\n`;
}

function whoReduces({ by, aggregators }: ByNetworkView): string {
  if (by === 'plugin') return "a plugin's collective network, if the plugin has one";
  const places = [...Map.groupBy(aggregators, ({ speedMbps }) => speedMbps)].map(([speedMbps, own]) => {
    const hosts = foldNames(own.map(({ host }) => host)).join(', ');
    return speedMbps === null ? hosts : `${hosts} (${networkSpeed(Math.round(speedMbps))})`;
  });
  return `${aggregators.length === 1 ? 'an aggregator' : 'aggregators'} on ${places.join(', ')}`;
}

function rangeRow({
  upToBytes,
  isTaken,
  isAskedFor,
  bytes,
  collnet,
  otherAlgorithm,
  other,
  limit,
}: RangeView): string[] {
  return [
    upToBytes === null ? 'all' : String(upToBytes),
    (isTaken ? 'yes' : 'no') + (isAskedFor ? ', as asked for' : ''),
    String(bytes),
    timeText(collnet),
    `${otherAlgorithm} ${timeText(other)}`,
    limit,
  ];
}

function timeText({ predictedMicroseconds, measuredMicroseconds }: TimesView): string {
  const measured = measuredMicroseconds === null ? '' : ` (measured ${measuredMicroseconds})`;
  return `${predictedMicroseconds}${measured}`;
}
