/** A scheduler that is killed at the n-th point of its way, and the next one that goes on. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { BatchRig, LEDGER } from './batch.ts';
import { repository } from './cluster.ts';
import { Command } from './command.ts';

/** Three tasks: one after the other, and one that fails the first time that it runs. */
const FILE = `version: 1
name: killed
defaults: { output: "%x.%r.out", working_dir: DIRECTORY }
jobs:
  - { name: a, command: '${LEDGER}' }
  - { name: b, command: '${LEDGER}', after: a }
  - { name: c, command: '${LEDGER}; ! mkdir failed', retry: { max_retries: 1, delay: 1s } }
`;

export interface Killed {
  /** Points that the scheduler came past. */
  readonly points: number;
  /** The last of them. */
  readonly point: string;
  /** Status of the next scheduler; null: there was nothing that it could go on with. */
  readonly status: number | null;
  readonly ledger: readonly string[];
  readonly output: string;
}

export function buildDieAt(directory: string): string {
  const library = join(directory, 'die-at.so');
  execFileSync('cc', [
    '-shared',
    '-fPIC',
    '-O1',
    '-o',
    library,
    join(repository, 'test/rig/programs/die-at.c'),
    '-ldl',
  ]);
  return library;
}

/** `at`: number of the point; null: it lives. */
export async function killedAt(at: number | null, library: string): Promise<Killed> {
  await using rig = await BatchRig.open();
  const log = join(rig.directory, 'points');
  const file = rig.file(FILE.replaceAll('DIRECTORY', rig.directory));
  const environment = {
    ...rig.environment,
    LD_PRELOAD: library,
    DIE_LOG: log,
    DIE_WORD: 'batch',
    ...(at === null ? {} : { DIE_AT: String(at) }),
  };
  // bin/ncclrun lets nobody preload a library; its Node takes it.
  const program = process.execPath;
  const main = join(repository, 'dist/bundle/main.cjs');
  // Its end would be that of the launchers, too.
  await using scheduler = Command.start([main, 'batch', file, '--id', 'killed'], { program, environment });
  const first = await scheduler.outcome;
  const points = existsSync(log) ? readFileSync(log, 'utf8').trim().split('\n') : [];
  const facts = { points: points.length, point: points.at(-1) ?? '' };
  if (at === null) return { ...facts, status: first.status, ledger: rig.ledger(), output: first.stderr };
  const next = await rig.run(['batch', '--resume', 'killed']);
  const output = `${next.stdout}${next.stderr}`;
  const isNothing = next.status === 2 && /was never submitted|there is no batch/u.test(output);
  return { ...facts, status: isNothing ? null : next.status, ledger: rig.ledger(), output };
}
