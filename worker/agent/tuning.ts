/** What ncclrun tune has measured on this host. A job without such tables looks once for their directory, when its first communicator is planned. */
import { existsSync } from 'node:fs';
import { cacheDirectory } from '../../control/cache-directory.ts';
import type { Tables, TableUse } from '../../control/planner/measured/tables.ts';

export interface TuningListener {
  used(use: TableUse): void;
  /** A table is not what it should be. */
  problem(message: string): void;
}

/** null: there are none, or they are not wanted. */
export type OwnTables = () => Promise<Tables> | null;

/** `environment`: NCCLRUN_TUNE=0 takes no table; =measure: plans have every variant, each by its number. */
export function findTables(environment: NodeJS.ProcessEnv, listener: TuningListener): OwnTables {
  let found: Promise<Tables> | null | undefined;
  return () => {
    if (found === undefined) found = tablesOf(environment, listener);
    return found;
  };
}

function tablesOf(environment: NodeJS.ProcessEnv, listener: TuningListener): Promise<Tables> | null {
  const wish = environment['NCCLRUN_TUNE'];
  if (wish === '0') return null;
  const measures = wish === 'measure';
  const cache = cacheDirectory(environment);
  if (cache === null) return null;
  const directory = `${cache}/tuning`;
  return measures || existsSync(directory) ? load(directory, measures, listener) : null;
}

async function load(directory: string, measures: boolean, listener: TuningListener): Promise<Tables> {
  const { makeTables } = await import('./measured-tables.ts');
  return makeTables(directory, measures, listener);
}
