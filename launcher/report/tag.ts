/** What a line of output begins with: the time at which its rank wrote it, and the rank. */
import { printable } from '../../control/printable.ts';
import type { JobRequest } from '../model/types.ts';
import type { Paint } from '../text/colour.ts';
import type { LaneChunk } from './lane.ts';
import { localTime } from './local-time.ts';
import { ranges } from '../text/ranges.ts';

export interface TagOptions {
  readonly tagOutput: JobRequest['tagOutput'];
  readonly timestamps: boolean;
}

/** `several`: lines of other ranks may stand beside this one. Empty where nothing is asked for. */
export function tagOf(chunk: LaneChunk, several: boolean, options: TagOptions, paint: Paint): string {
  const tag = rankTag(chunk, several, options.tagOutput);
  const time = options.timestamps ? localTime(chunk.time) : '';
  const text = time !== '' && tag !== '' ? `${time} ${tag}` : time + tag;
  return text === '' ? '' : `${paint('dim', text)} `;
}

function rankTag(chunk: LaneChunk, several: boolean, tagOutput: JobRequest['tagOutput']): string {
  switch (tagOutput) {
    case 'none':
      return '';
    case 'auto':
      return several ? `[${ranksOf(chunk.writers ?? [chunk])}]` : '';
    case 'rank':
      return `[${ranksOf(chunk.writers ?? [chunk])}]`;
    case 'host':
      return `[${hostsOf(chunk.writers ?? [chunk])}]`;
    default:
      return tagOutput satisfies never;
  }
}

type Writers = NonNullable<LaneChunk['writers']>;

/** `3`, or `0-36,38-1023`. */
function ranksOf(writers: Writers): string {
  return ranges(writers.map(({ rank }) => rank).toSorted((one, other) => one - other));
}

/** `3@node1`, or `0-3@node1,4-7@node2`. */
function hostsOf(writers: Writers): string {
  const byHost = Map.groupBy(
    writers.toSorted((one, other) => one.rank - other.rank),
    ({ host }) => host,
  );
  return Array.from(byHost, ([host, there]) => `${ranksOf(there)}@${printable(host)}`).join();
}
