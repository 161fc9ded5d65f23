/**
 * Plants every fault in every rank and collective, and prints how many verdicts are right.
 *
 *     node test/planted/main.ts [--only FAULT[,FAULT…]] [--collectives NAME[,NAME…]] [--ranks RANK[,RANK…]] [--graphs] [--hosts N] [--jobs N] [--verbose]
 */
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { repository } from '../rig/cluster.ts';
import { allCases } from './cases.ts';
import { playAll } from './play-all.ts';
import { compileFaulty, hostDevice, standIn } from './program.ts';
import { tableText, wrongText } from './table.ts';

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    collectives: { type: 'string' },
    ranks: { type: 'string' },
    graphs: { type: 'boolean', default: false },
    hosts: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
    verbose: { type: 'boolean', default: false },
  },
});
const isIn = (list: string | undefined, name: string): boolean => list === undefined || list.split(',').includes(name);
const cases = allCases(values.graphs).filter(
  ({ fault, collective, rank }) =>
    isIn(values.only, fault.name) && isIn(values.collectives, collective) && isIn(values.ranks, String(rank)),
);
const directory = await mkdtemp(join(repository, 'build/planted-'));
try {
  const program = await compileFaulty(directory);
  const device = values.graphs ? standIn : hostDevice;
  const hosts = values.hosts === '1' ? [] : ['--simulate-hosts', values.hosts];
  const where = { ...device, options: [...device.options, ...hosts] };
  const played = await playAll(program, cases, where, Number(values.jobs), (one) => {
    if (one.wrongs.length > 0) console.log(wrongText(one));
    if (values.verbose) console.log(JSON.stringify(one.verdicts, null, 1));
  });
  console.log(tableText(played));
  process.exitCode = played.every(({ wrongs }) => wrongs.length === 0) ? 0 : 1;
} finally {
  await rm(directory, { recursive: true });
}
