/**
 * Every flag, its other names, its variable and its key in a settings file, through the built command: all that stand for one option must give
 * the same job, as --dry-run prints it. What the options do is tested where it is done.
 */
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { isSetting, type Option } from '../../launcher/model/option.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-flags-'));
afterAll(() => rmSync(directory, { recursive: true }));
const hostfile = join(directory, 'hosts');
writeFileSync(hostfile, 'localhost slots=4\n');

interface Sample {
  /** null: the option takes none. */
  readonly value: string | null;
  /** What the option needs beside it. */
  readonly beside?: readonly string[];
}

const besideHostfile = ['--machinefile', hostfile];
/** A value for every option that is part of a job's description. */
const samples: Readonly<Record<string, Sample>> = {
  np: { value: '2' },
  npernode: { value: '2', beside: besideHostfile },
  oversubscribe: { value: null, beside: ['-H', 'localhost:1', '-n', '3'] },
  export: { value: 'COLOUR=blue' },
  wdir: { value: '/' },
  plan: { value: 'plan.json' },
  engine: { value: 'ncclrun' },
  'map-by': { value: 'node', beside: besideHostfile },
  'rank-by': { value: 'slot', beside: besideHostfile },
  'bind-to': { value: 'none' },
  'report-bindings': { value: null },
  'isolate-gpus': { value: null },
  'busy-gpus': { value: 'refuse' },
  host: { value: 'localhost:3' },
  hostfile: { value: hostfile },
  include: { value: 'localhost', beside: besideHostfile },
  exclude: { value: 'localhost:0', beside: besideHostfile },
  rsh: { value: 'openssh' },
  radix: { value: '2' },
  'simulate-hosts': { value: '2', beside: ['-n', '4'] },
  pmi: { value: 'none' },
  'port-range': { value: '20000-20999' },
  stage: { value: 'never' },
  collnet: { value: '2', beside: ['--simulate-hosts', '2', '-n', '4'] },
  'collnet-hosts': { value: 'simulated-2', beside: ['--simulate-hosts', '2', '-n', '4'] },
  'tag-output': { value: 'host' },
  'timestamp-output': { value: null },
  output: { value: 'dir=out' },
  'output-filename': { value: 'out' },
  'merge-stderr-to-stdout': { value: null },
  'output-ranks': { value: '0' },
  fold: { value: null },
  live: { value: 'never' },
  stdin: { value: 'all' },
  report: { value: 'report.json' },
  record: { value: 'all' },
  events: { value: 'events.jsonl' },
  timeout: { value: '5' },
  'init-timeout': { value: '5' },
  'hang-after': { value: '5' },
  'straggler-window': { value: '5' },
  'on-hang': { value: 'abort' },
  'resource-manager': { value: 'none' },
  grace: { value: '2' },
  'spawn-timeout': { value: '5' },
  'forward-signals': { value: 'USR1' },
  'on-failure': { value: 'abort' },
  'max-restarts': { value: '0' },
};
/** They say how to start or to print: the job is the same with them and without. */
const noPartOfTheJob = [
  'doctor',
  'json',
  'color',
  'quiet',
  'verbose',
  'dry-run',
  'explain',
  'version',
  'help',
  'resource-manager',
];

const program = ['/bin/echo', '-n', '7', '--lr', '007', '1e3'];

interface Place {
  readonly name: string;
  readonly argv: readonly string[];
  readonly environment?: NodeJS.ProcessEnv;
  readonly file?: { readonly path: string; readonly settings: string };
}

const projectFile = 'ncclrun.json';
const userFile = 'ncclrun/config.json';

/** Every place where the option can be given this value. */
function places(option: Option, value: string | null): Place[] {
  const flags = option.flags.flatMap((flag): Place[] => {
    if (value === null) return [{ name: flag, argv: [flag] }];
    const joined = { name: `${flag}=`, argv: [`${flag}=${value}`] };
    return 'implied' in option.kind ? [joined] : [{ name: flag, argv: [flag, value] }, joined];
  });
  const pairs = (option.pairFlags ?? []).map((flag) => ({ name: flag, argv: [flag, ...(value ?? '').split('=')] }));
  const variables = option.environment.map((name) => ({ name, argv: [], environment: { [name]: value ?? '1' } }));
  const settings = JSON.stringify({ [option.name]: value ?? true });
  const user = { name: userFile, argv: [], file: { path: userFile, settings } };
  const project = { name: projectFile, argv: [], file: { path: projectFile, settings } };
  // What a project file must not set has tests of its own.
  const mayBeProject = isSetting(option) && option.project === 'any';
  return [...flags, ...pairs, ...variables, user, ...(mayBeProject ? [project] : [])];
}

let count = 0;
async function dryRun({ argv, environment, file }: Place, beside: readonly string[]): Promise<unknown> {
  count += 1;
  const home = join(directory, `${count}`);
  mkdirSync(join(home, 'ncclrun'), { recursive: true });
  if (file !== undefined) writeFileSync(join(home, file.path), file.settings);
  const options = { directory: home, environment: { ...environment, XDG_CONFIG_HOME: home } };
  const { status, stdout, stderr } = await Command.run(
    ['--dry-run', '--json', ...beside, ...argv, ...program],
    options,
  );
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return JSON.parse(stdout);
}

describe('every option has a sample', () => {
  it.each(runCommandLine.options.map((option) => option.name))('this file covers the option %s', (name) => {
    expect(name in samples || noPartOfTheJob.includes(name)).toBe(true);
  });
});

describe('every spelling of an option', () => {
  const options = runCommandLine.options.filter(({ name }) => name in samples);
  it.each(options.map((option) => [option.name, option] as const))(
    'every spelling and source of the option %s gives the same job',
    async (name, option) => {
      const { value, beside = [] } = samples[name] ?? { value: null };
      const [first, ...others] = await Promise.all(
        places(option, value).map(async (place) => ({ place: place.name, dry: await dryRun(place, beside) })),
      );
      const words = 'implied' in option.kind ? [`${option.flags[0]}=${value}`] : [option.flags[0], value];
      const text = JSON.stringify(words.filter((word) => word !== null)).slice(1, -1);
      expect(JSON.stringify(first?.dry)).toContain(text);
      expect(JSON.stringify(first?.dry)).toContain(`${JSON.stringify(program).slice(1, -1)}]`);
      for (const other of others) expect(other).toEqual({ place: other.place, dry: first?.dry });
    },
  );
});

describe('the flags that the documentation lists', () => {
  const page = readFileSync(join(repository, 'docs/command.md'), 'utf8');
  const rows = page.split('\n').filter((row) => row.startsWith('| `-'));
  const promised = rows.flatMap((row) => {
    const [, ours = '', others = ''] = row.split(/(?<!\\)\|/u);
    return [...`${ours} ${others}`.matchAll(/`(-[\w-]+)/gu)].map(([, flag = '']) => flag);
  });
  const known = runCommandLine.options.flatMap(({ flags, pairFlags = [] }) => [...flags, ...pairFlags]);

  it('docs/command.md lists more than forty flags', () => {
    expect(promised.length).toBeGreaterThan(40);
  });

  it.each(promised)('the documented flag %s exists', (flag) => {
    expect(known).toContain(flag);
  });

  it.each(known.filter((flag) => flag !== '--help' && flag !== '-h'))('the table lists the flag %s', (flag) => {
    expect(promised).toContain(flag);
  });
});
