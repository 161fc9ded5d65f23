/** The tables of this host, with the names of its hardware. Loaded where there are any: tuning.ts. */
import { Tables } from '../../control/planner/measured/tables.ts';
import { hardwareNames } from '../topology/hardware-names.ts';
import type { TuningListener } from './tuning.ts';

export function makeTables(directory: string, measures: boolean, listener: TuningListener): Tables {
  return new Tables({
    directory,
    measures,
    names: hardwareNames(),
    used: (use) => listener.used(use),
    problem: (message) => listener.problem(message),
  });
}
