/** A rank that tries one aspect of the program interface, named by its argument. */
import { UsageError } from 'ncclrun';
import { abort } from './abort.ts';
import type { Cases } from './common.ts';
import { communicators } from './communicators.ts';
import { data } from './data.ts';
import { devices } from './devices.ts';
import { exit } from './exit.ts';
import { garbage } from './garbage.ts';
import { joining } from './joining.ts';
import { memory } from './memory.ts';
import { order } from './order.ts';
import { threads } from './threads.ts';
import { refusals } from './usage.ts';

const cases: Cases = {
  ...abort,
  ...communicators,
  ...data,
  ...devices,
  ...exit,
  ...garbage,
  ...joining,
  ...memory,
  ...order,
  ...threads,
  ...refusals,
};
const name = process.argv[2] ?? '';
const run = cases[name];
if (run === undefined) throw new UsageError(`no case ${name}; there are: ${Object.keys(cases).join(', ')}`);
await run();
