/** A PBS job's hosts: the file that PBS_NODEFILE names has a line for each slot. */
import type { LauncherMachine } from '../grammar/machine.ts';
import { readHosts } from '../grammar/machine.ts';
import { Reading } from '../grammar/reading.ts';
import { tokenize } from '../grammar/tokenize.ts';
import { mentions, type ManagedHosts } from './hosts.ts';
import type { Manager } from './manager.ts';

/** Throws a FailureError (hostfile). */
export function pbsHosts({ environment }: Manager, machine: LauncherMachine): ManagedHosts {
  const path = environment['PBS_NODEFILE'] ?? '';
  const content = readHosts(path, machine, null, 'PBS_NODEFILE names it; leave that as PBS set it');
  const reading = new Reading();
  const entries = content.split('\n').flatMap((text, index) => {
    const line = { source: path, line: index + 1, text };
    return tokenize(text).flatMap((token) => mentions(token, 1, line, reading));
  });
  return { entries, why: null };
}
