/** What a line of output begins with: the time at which its rank wrote it, and the rank. */
import type { OutputChunk } from '../job/event.ts';
import type { JobRequest } from '../job/types.ts';
import type { Paint } from './colour.ts';
import { localTime } from './local-time.ts';

export interface TagOptions {
  readonly tagOutput: JobRequest['tagOutput'];
  readonly timestamps: boolean;
}

/** Whom a line is of: a rank, or several that wrote the same. */
export interface TagSource extends Pick<OutputChunk, 'host' | 'time'> {
  /** `3`, or `0-36,38-1023`. */
  readonly ranks: string;
}

/** `several`: lines of other ranks may stand beside this one. Empty where nothing is asked for. */
export function tagOf(source: TagSource, several: boolean, options: TagOptions, paint: Paint): string {
  const tag = rankTag(source, several, options.tagOutput);
  const time = options.timestamps ? localTime(source.time) : '';
  const text = time !== '' && tag !== '' ? `${time} ${tag}` : time + tag;
  return text === '' ? '' : `${paint('dim', text)} `;
}

function rankTag({ ranks, host }: TagSource, several: boolean, tagOutput: JobRequest['tagOutput']): string {
  switch (tagOutput) {
    case 'none':
      return '';
    case 'auto':
      return several ? `[${ranks}]` : '';
    case 'rank':
      return `[${ranks}]`;
    case 'host':
      return `[${ranks}@${host}]`;
    default:
      return tagOutput satisfies never;
  }
}
