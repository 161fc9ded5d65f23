/** Our reading of lists beside that of the tools that they come from, and their reading of what we write. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { parseHostfile } from '../../launcher/allocation/grammar/hostfile.ts';
import { findProgram, describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { randomHostfile } from '../rig/hostfiles.ts';
import { seededRandom } from '../rig/random.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-peers-'));
afterAll(() => rmSync(directory, { recursive: true }));

const missing = (program: string) => (findProgram(program) === null ? `${program} is not installed` : null);
const ours = (list: string): string[] => parseHostfile(list, 'list').map(({ name }) => name);

async function written(list: string, grammar: string): Promise<string> {
  const { stdout } = await Command.run(['hosts', list, '--to', grammar]);
  return stdout.trim();
}

/** Lists whose words have their ranges anywhere. */
const lists = Array.from({ length: 30 }, (_, seed) =>
  randomHostfile('pdsh', seededRandom(seed))
    .text.split('\n')
    .map((line) => line.replace(/#.*/u, '').trim())
    .filter((line) => line !== '')
    .join(','),
);

const namedByPdsh = (list: string): string[] =>
  (execFileSync('pdsh', ['-Q', '-w', list], { encoding: 'utf8' }).trim().split('\n').at(-1) ?? '').split(',');

describeIf(
  missing('pdsh'),
  'pdsh',
  () => {
    it('pdsh reads the same hosts from a list as ncclrun', () => {
      for (const list of lists) expect(namedByPdsh(list).toSorted(), list).toEqual(ours(list).toSorted());
      expect(ours('n[08-11],m[98-101]')).toEqual(namedByPdsh('n[08-11],m[98-101]'));
    });

    it('pdsh reads the lists that ncclrun hosts --to pdsh writes', async () => {
      for (const list of lists.slice(0, 5)) {
        expect(namedByPdsh(await written(list, 'pdsh')).toSorted(), list).toEqual(ours(list).toSorted());
      }
    });
  },
  true,
);

describeIf(
  missing('scontrol'),
  'Slurm',
  () => {
    const configuration = join(directory, 'slurm.conf');
    writeFileSync(configuration, 'ClusterName=none\nSlurmctldHost=localhost\n');
    const theirs = (list: string): string[] =>
      execFileSync('scontrol', ['show', 'hostnames', list], {
        encoding: 'utf8',
        env: { ...process.env, SLURM_CONF: configuration },
      })
        .trim()
        .split('\n');

    it('scontrol reads the same hosts in the same order as ncclrun', () => {
      const atTheEnd = lists.filter((list) => !/\][^,[]/u.test(list));
      for (const list of [...atTheEnd, 'a[01-04,07]', 'r[1-2]n[08-11]', 'm[98-101],b']) {
        expect(ours(list), list).toEqual(theirs(list));
      }
    });

    it('scontrol reads the lists that ncclrun hosts --to slurm writes', async () => {
      for (const list of [...lists.slice(0, 5), 'b[1-2]c,10.0.0.[1-3]']) {
        expect(theirs(await written(list, 'slurm')), list).toEqual(ours(list));
      }
    });
  },
  true,
);
