/** An LSF job's hosts: LSB_MCPU_HOSTS has pairs of host and slots, LSB_HOSTS each host once for each slot. */
import { hostfileError, positionIn } from '../grammar/diagnostic.ts';
import { parseSlots } from '../grammar/number.ts';
import { Reading } from '../grammar/reading.ts';
import { tokenize } from '../grammar/tokenize.ts';
import { type ManagedHosts, mentions } from './hosts.ts';
import type { Manager } from './manager.ts';

/** Throws a FailureError (hostfile). */
export function lsfHosts({ environment }: Manager): ManagedHosts {
  const reading = new Reading();
  const pairs = { source: 'LSB_MCPU_HOSTS', line: 1, text: environment['LSB_MCPU_HOSTS'] ?? '' };
  const words = tokenize(pairs.text);
  if (words.length === 0) {
    const line = { source: 'LSB_HOSTS', line: 1, text: environment['LSB_HOSTS'] ?? '' };
    return { entries: tokenize(line.text).flatMap((token) => mentions(token, 1, line, reading)), why: null };
  }
  const entries = words.flatMap((host, index) => {
    if (index % 2 === 1) return [];
    const count = words[index + 1];
    if (count !== undefined) return mentions(host, parseSlots(count, 'the number of slots', pairs), pairs, reading);
    const position = positionIn(pairs, host.offset, host.text.length);
    throw hostfileError(`${host.text} has no number of slots`, position, 'leave LSB_MCPU_HOSTS as LSF set it');
  });
  return { entries, why: null };
}
