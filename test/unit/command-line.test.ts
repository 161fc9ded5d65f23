import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { helpText, shortHelpText } from '../../launcher/cli/commands/help.ts';
import { jobRequest } from '../../launcher/cli/job-request.ts';
import { editDistance, nearest } from '../../launcher/text/nearest.ts';
import { normalisedCommand, shellLine } from '../../launcher/cli/normalise.ts';
import {
  type JobOptionName,
  type MeasureOptionName,
  perfCommandLine,
  runCommandLine,
} from '../../launcher/cli/options.ts';
import { readCommandLine } from '../../launcher/cli/read-command-line.ts';
import { layerOfJson, settingsFiles } from '../../launcher/cli/settings-file.ts';
import { splitCommandLine } from '../../launcher/cli/split.ts';
import { parseBytes } from '../../launcher/model/values.ts';
import type { ProgramRequest } from '../../launcher/model/types.ts';
import { failureFrom } from './failure-from.ts';

/** No settings file is found there. */
const nowhere = { XDG_CONFIG_HOME: '/nonexistent' };

const read = (argv: readonly string[], environment: Readonly<Record<string, string>> = {}) =>
  readCommandLine<JobOptionName>(argv, runCommandLine, { ...nowhere, ...environment });

const requestOf = (argv: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
  const { settings, words, further } = read(argv, environment);
  return jobRequest(settings, words, further);
};

const paths = (environment: Readonly<Record<string, string>>) => settingsFiles(environment).map(({ path }) => path);

const usage = (run: () => unknown): string => {
  const failure = failureFrom(run);
  if (failure.type !== 'usage') throw new Error(`a failure of type ${failure.type}`);
  const { position } = failure;
  const place = position === undefined ? '' : `${position.source}:${position.line}:${position.column}: `;
  return `${place}${failure.message}; ${failure.remedy ?? ''}`;
};

describe('the boundary between options and program', () => {
  test.each<[string, string[], string[]]>([
    ['a program', ['prog'], ['prog']],
    ['its options', ['-n', '4', 'prog', '-n', '7', '--json'], ['prog', '-n', '7', '--json']],
    [
      'numbers as typed',
      ['-n', '4', 'train.py', '--lr', '007', '1e3', '0x10'],
      ['train.py', '--lr', '007', '1e3', '0x10'],
    ],
    ['dots and negations as typed', ['prog', '--a.b', '1', '--no-x'], ['prog', '--a.b', '1', '--no-x']],
    ['an option with =', ['--np=4', 'prog'], ['prog']],
    ['a flag takes no word', ['--json', 'prog', 'x'], ['prog', 'x']],
    ['--tag-output takes no word', ['--tag-output', 'host'], ['host']],
    ['after --', ['-n', '2', '--', '-weird', '--'], ['-weird', '--']],
    ['-- of the program', ['prog', '--', 'x'], ['prog', '--', 'x']],
    ['a : after --', ['-n', '2', '--', 'prog', ':', 'x'], ['prog', ':', 'x']],
    ['a : within a word', ['prog', 'a:b', '::'], ['prog', 'a:b', '::']],
    ['a lone dash', ['-n', '2', '-', 'x'], ['-', 'x']],
    ['an empty word', ['-n', '2', '', 'x'], ['', 'x']],
    ['a pair', ['-genv', 'A', '1', 'prog'], ['prog']],
    ['nothing', ['-n', '2'], []],
  ])('splitCommandLine finds the program: %s', (_name, argv, words) => {
    expect(splitCommandLine(argv, runCommandLine).words).toEqual(words);
  });

  test('":" separates programs with options of their own', () => {
    const { words, further } = splitCommandLine(
      ['-n', '2', 'a', 'x', ':', '-n', '3', '-x', 'A=1', 'b', '-n', ':', '--', 'c', ':', 'd'],
      runCommandLine,
    );
    expect(words).toEqual(['a', 'x']);
    expect(further.map((part) => part.words)).toEqual([
      ['b', '-n'],
      ['c', ':', 'd'],
    ]);
    expect(further[0]?.given.map(({ flag, value }) => [flag, value])).toEqual([
      ['-n', '3'],
      ['-x', 'A=1'],
    ]);
  });

  test.each([
    [['true', ':'], /no program after the ':'/],
    [['true', ':', '-n', '2'], /no program after the ':'/],
    [['true', ':', ':', 'true'], /no program after the ':'/],
    [[':', 'true'], /no program before the ':'.*ncclrun -- PROGRAM/],
    [['true', ':', '--timeout', '3', 'false'], /--timeout stands after a ':'.*move --timeout before the first program/],
  ])('the command line %j is rejected', (argv, message) => {
    expect(usage(() => splitCommandLine(argv, runCommandLine))).toMatch(message);
  });

  test('perf takes its collective between its options', () => {
    expect(splitCommandLine(['all_reduce', '-n', '4', '-b', '8'], perfCommandLine).words).toEqual(['all_reduce']);
    expect(splitCommandLine(['-n', '4', 'all_reduce', '-f', '2'], perfCommandLine).words).toEqual(['all_reduce']);
  });
});

describe('the spellings of options', () => {
  test.each<[string[], Partial<ReturnType<typeof requestOf> & ProgramRequest>]>([
    [['-n', '4'], { ranks: 4 }],
    [['-np', '4'], { ranks: 4 }],
    [['--np', '4'], { ranks: 4 }],
    [['--np=4'], { ranks: 4 }],
    [['--ntasks', '4'], { ranks: 4 }],
    [['-N', '2'], { ranksPerHost: 2 }],
    [['--npernode', '2'], { ranksPerHost: 2 }],
    [['-npernode', '2'], { ranksPerHost: 2 }],
    [['-ppn', '2'], { ranksPerHost: 2 }],
    [['--nproc-per-node', 'gpu'], { ranksPerHost: 'gpu' }],
    [['--nproc-per-node', '2'], { ranksPerHost: 2 }],
    [['--ntasks-per-node=2'], { ranksPerHost: 2 }],
    [['-H', 'a:8,b:8'], { hostList: 'a:8,b:8' }],
    [['--host', 'a', '-H', 'b'], { hostList: 'a,b' }],
    [['-host', 'a'], { hostList: 'a' }],
    [['-hosts', 'a'], { hostList: 'a' }],
    [['-w', 'a'], { hostList: 'a' }],
    [['--hostfile', 'f'], { hostfile: 'f' }],
    [['-hostfile', 'f'], { hostfile: 'f' }],
    [['--machinefile', 'f'], { hostfile: 'f' }],
    [['-machinefile', 'f'], { hostfile: 'f' }],
    [['-f', 'f'], { hostfile: 'f' }],
    [['-x', 'A', '-x', 'B=1=2', '--export', 'C*'], { exports: ['A', 'B=1=2', 'C*'] }],
    [['-genv', 'A', 'x y'], { exports: ['A=x y'] }],
    [['-x', 'A='], { exports: ['A='] }],
    [['--wdir', '/d'], { workingDirectory: '/d' }],
    [['-wdir', '/d'], { workingDirectory: '/d' }],
    [['-wd', '/d'], { workingDirectory: '/d' }],
    [['--chdir', '/d'], { workingDirectory: '/d' }],
    [['--timeout', '30'], { timeoutSeconds: 30 }],
    [['--timeout', '0.5'], { timeoutSeconds: 0.5 }],
    [['--timeout', '10m'], { timeoutSeconds: 600 }],
    [['--timeout', '1h30m'], { timeoutSeconds: 5400 }],
    [['--timeout', '1.5h'], { timeoutSeconds: 5400 }],
    [['--grace', '500ms'], { graceSeconds: 0.5 }],
    [['--init-timeout', '30'], { initTimeoutSeconds: 30 }],
    [['--max-restarts', '2'], { maxRestarts: 2 }],
    [['--on-failure', 'restart'], { maxRestarts: 3 }],
    [['--on-failure', 'restart', '--max-restarts', '7'], { maxRestarts: 7 }],
    [['--on-hang', 'restart'], { maxRestarts: 3, onHang: 'restart' }],
    [['--on-failure', 'abort', '--max-restarts', '0'], { maxRestarts: 0 }],
    [['--on-failure', 'shrink'], { maxRestarts: 0, shrinks: true }],
    [['--grace', '2'], { graceSeconds: 2 }],
    [['--tag-output'], { tagOutput: 'rank' }],
    [['-l'], { tagOutput: 'rank' }],
    [['--tag-output=host'], { tagOutput: 'host' }],
    [['--tag-output=none'], { tagOutput: 'none' }],
    [['--rsh', 'openssh'], { rsh: 'openssh' }],
    [['--oversubscribe'], { oversubscribe: true }],
    [['-oversubscribe'], { oversubscribe: true }],
    [['--oversubscribe=false'], { oversubscribe: false }],
    [['--plan', 'p.json'], { planFile: 'p.json' }],
    [['--engine', 'ncclrun'], { engine: 'ncclrun' }],
    [['--pmi', 'none'], { pmi: 'none' }],
    [['--map-by', 'ppr:2:node'], { mapBy: { by: 'ppr', count: 2, object: 'node' } }],
    [['--map-by', 'slot:OVERSUBSCRIBE'], { mapBy: { by: 'slot' }, oversubscribe: true }],
    [['--map-by', 'numa', '--rank-by=numa'], { mapBy: { by: 'numa' }, rankBy: 'numa' }],
    [['--bind-to', 'core'], { bindTo: 'core' }],
    [['-n', '4', '-n', '8'], { ranks: 8 }],
  ])('the options %o set the expected values', (argv, expected) => {
    const { programs, ...ofJob } = requestOf([...argv, 'prog']);
    expect({ ...programs[0], ...ofJob }).toMatchObject({ ...expected, argv: ['prog'] });
  });

  test('the request has defaults without options', () => {
    expect(requestOf(['prog'])).toEqual({
      programs: [
        { argv: ['prog'], ranks: null, ranksPerHost: null, exports: [], workingDirectory: null, hostList: null },
      ],
      hostList: null,
      hostfile: null,
      simulated: null,
      manager: null,
      hangAfterSeconds: 30,
      stragglerWindowSeconds: 20,
      onHang: 'report',
      recordsFailures: false,
      recordsAll: false,
      maxRestarts: 0,
      shrinks: false,
      timeoutSeconds: null,
      initTimeoutSeconds: null,
      graceSeconds: 5,
      tagOutput: 'auto',
      outputRanks: null,
      timestampOutput: false,
      outputFiles: [],
      outputShown: true,
      mergeStderr: false,
      fold: false,
      live: true,
      stdin: { type: 'ranks', ranges: [{ first: 0, last: 0 }] },
      rsh: 'auto',
      radix: 32,
      portRange: null,
      stage: true,
      mapBy: { by: 'slot' },
      rankBy: null,
      bindTo: 'none',
      reportBindings: false,
      isolateGpus: false,
      busyGpus: 'report',
      include: null,
      exclude: null,
      spawnTimeoutSeconds: null,
      forwardSignals: ['SIGUSR1', 'SIGUSR2', 'SIGTSTP', 'SIGCONT'],
      oversubscribe: false,
      planFile: null,
      engine: 'none',
      pmi: 'pmi1',
      aggregators: null,
    });
  });

  test('no two options share a flag', () => {
    for (const line of [runCommandLine, perfCommandLine]) {
      const owners = new Map<string, string>();
      for (const { name, flags, pairFlags = [] } of line.options) {
        for (const flag of [...flags, ...pairFlags]) {
          const bare = flag.replace(/^--?/u, '');
          expect(owners.get(bare) ?? name, flag).toBe(name);
          owners.set(bare, name);
        }
      }
    }
  });
});

describe('invalid command lines', () => {
  test.each<[string[], string]>([
    [['--hotsfile', 'f', 'prog'], 'unknown option --hotsfile; did you mean --hostfile?'],
    [['--time', '3', 'prog'], '--time is an option of Slurm that ncclrun does not have; write --timeout 30m'],
    [['--timout=3', 'prog'], 'unknown option --timout; did you mean --timeout?'],
    [['-n4', 'prog'], 'unknown option -n4; did you mean -n 4?'],
    [['-np4', 'prog'], 'unknown option -np4; did you mean -np 4?'],
    [['--zzzzzz', 'prog'], 'unknown option --zzzzzz; ncclrun --help all lists all'],
    [['-n', 'four', 'prog'], '-n is "four"; a whole number from 1'],
    [['-np', '0', 'prog'], '-np is "0"; a whole number from 1'],
    [['-n', '-1', 'prog'], '-n is "-1"; a whole number from 1'],
    [['-n', '4.5', 'prog'], '-n is "4.5"'],
    [['-n', '1e3', 'prog'], '-n is "1e3"'],
    [['-n', '0x10', 'prog'], '-n is "0x10"'],
    [['-n', '', 'prog'], '-n is ""'],
    [['-n'], '-n needs a value; write -n N'],
    [['-n', '--json', 'prog'], '-n needs a value; write -n N, or -n=--json if that is the value'],
    [['-genv', 'A'], '-genv needs a name and a value; write -genv NAME VALUE'],
    [['--timeout', 'soon', 'prog'], '--timeout is "soon"; a number of seconds'],
    [['--timeout', '30m1h', 'prog'], '--timeout is "30m1h"; a number of seconds'],
    [['--timeout', '5x', 'prog'], '--timeout is "5x"; a number of seconds'],
    [['--timeout', '0', 'prog'], '--timeout is "0"; a number of seconds'],
    [['--timeout', '99999999', 'prog'], '--timeout is "99999999"'],
    [['--tag-output=colour', 'prog'], '--tag-output is "colour"; one of auto, rank, host, none'],
    [['--bind-to', 'nuna', 'prog'], '--bind-to is "nuna"; did you mean numa? one of none, core, numa, gpu is wanted'],
    [['--bind-to', 'Core', 'prog'], '--bind-to is "Core"; did you mean core?'],
    [['--on-failure', 'abrot', 'prog'], '--on-failure is "abrot"; did you mean abort?'],
    [['--json=maybe', 'prog'], '--json is "maybe"; 1 or 0'],
    [['-x', '=1', 'prog'], `-x is "=1"; VAR, VAR=value or 'PREFIX*'`],
    [['-x', 'A*=1', 'prog'], '-x is "A*=1"'],
    [['-x', '', 'prog'], '-x is ""'],
    [['---n', '4', 'prog'], 'unknown option ---n'],
  ])('the command line %o is rejected with a suggestion', (argv, message) => {
    expect(usage(() => requestOf(argv))).toContain(message);
  });
});

describe('precedence of settings', () => {
  const options = runCommandLine.options;

  test('a flag overrides the environment, and the environment overrides the default', () => {
    expect(requestOf(['--grace', '1', 'p'], { NCCLRUN_GRACE: '2' }).graceSeconds).toBe(1);
    expect(requestOf(['p'], { NCCLRUN_GRACE: '2' }).graceSeconds).toBe(2);
    expect(requestOf(['p'], { NCCLRUN_GRACE: '' }).graceSeconds).toBe(5);
  });

  test('NCCLRUN_TIMEOUT overrides MPIEXEC_TIMEOUT', () => {
    expect(requestOf(['p'], { MPIEXEC_TIMEOUT: '9' }).timeoutSeconds).toBe(9);
    expect(requestOf(['p'], { MPIEXEC_TIMEOUT: '9', NCCLRUN_TIMEOUT: '8' }).timeoutSeconds).toBe(8);
  });

  test('commas separate lists in the environment', () => {
    expect(requestOf(['p'], { NCCLRUN_EXPORT: 'A,B=1' }).programs[0]?.exports).toEqual(['A', 'B=1']);
    expect(requestOf(['p'], { NCCLRUN_HOST: 'a:2,b' }).hostList).toBe('a:2,b');
    expect(requestOf(['-x', 'C', 'p'], { NCCLRUN_EXPORT: 'A,B=1' }).programs[0]?.exports).toEqual(['C']);
  });

  test('the failure names an invalid variable', () => {
    expect(usage(() => requestOf(['p'], { NCCLRUN_NP: 'x' }))).toContain('NCCLRUN_NP is "x"');
    expect(usage(() => requestOf(['p'], { MPIEXEC_TIMEOUT: 'x' }))).toContain('MPIEXEC_TIMEOUT is "x"');
    expect(requestOf(['-n', '1', 'p'], { NCCLRUN_NP: 'x' }).programs[0]?.ranks).toBe(1);
  });

  test('--help works despite invalid settings', () => {
    expect(read(['--help'], { NCCLRUN_NP: 'x' }).asked).toBe('help');
    expect(read(['--version', 'p'], { NCCLRUN_NP: 'x' }).asked).toBe('version');
    expect(read(['p', '--help']).asked).toBeNull();
  });

  test("the user's settings file lies below XDG_CONFIG_HOME or HOME", () => {
    const home = mkdtempSync(join(tmpdir(), 'ncclrun-settings-'));
    const environment = { XDG_CONFIG_HOME: home };
    expect(paths(environment)).toEqual(['ncclrun.json', join(home, 'ncclrun', 'config.json')]);
    expect(paths({ HOME: '/h' }).at(-1)).toBe('/h/.config/ncclrun/config.json');
    expect(paths({})).toEqual(['ncclrun.json']);
    // Relative ones would lie in whatever directory the user stands in.
    expect(paths({ HOME: '/h', XDG_CONFIG_HOME: 'config' }).at(-1)).toBe('/h/.config/ncclrun/config.json');
    expect(paths({ HOME: '' })).toEqual(['ncclrun.json']);
    expect(paths({ HOME: '.' })).toEqual(['ncclrun.json']);
    writeFileSync(join(home, 'ncclrun'), ''); // not a directory: as good as no file
    expect(requestOf(['p'], environment).graceSeconds).toBe(5);
  });

  test('JSON values become words', () => {
    const json = '{"np": 4, "oversubscribe": true, "export": ["A", "B=1"], "host": "a:2"}';
    const { layer } = layerOfJson(json, 'f', options, null);
    expect(Object.fromEntries(Array.from(layer, ([name, { values }]) => [name, values]))).toEqual({
      np: ['4'],
      oversubscribe: ['true'],
      export: ['A', 'B=1'],
      host: ['a:2'],
    });
  });

  test.each([
    ['{"np": 4', 'f:1:9: the file ends where , or } is wanted'],
    ['{"np": 4,}\n', 'f:1:10: no comma may stand before }'],
    ['{\n  np: 4\n}', 'f:2:3: a key in double quotes is wanted, not np'],
    ["{'np': 4}", 'f:1:2: JSON wants double quotes'],
    ['{"np": four}', 'f:1:8: text stands in double quotes: "four"'],
    ['{\n// eight\n"np": 8}', 'f:2:1: JSON has no comments'],
    ['{"np: 4}', 'f:1:2: the string does not end on its line'],
    ['{"np": 04}', 'f:1:8: "04" is not JSON'],
    ['{"np": 4} 5', 'f:1:11: nothing may follow the value'],
    ['', 'f:1:1: the file ends where a value is wanted'],
    ['[4]', 'f:1:1: the settings are not a JSON object'],
    ['null', 'f:1:1: the settings are not a JSON object'],
    ['{"np": 1,\n "np": 2}', 'f:2:2: "np" stands here a second time'],
    ['{"hotsfile": "x"}', 'f:1:2: unknown setting "hotsfile"; did you mean "hostfile"?'],
    ['{"-np": 4}', 'f:1:2: unknown setting "-np"; did you mean "np"?'],
    ['{"n": 4}', 'f:1:2: unknown setting "n"; did you mean "np"?'],
    ['{"tag_output": "host"}', 'f:1:2: unknown setting "tag_output"; did you mean "tag-output"?'],
    ['{"NCCLRUN_NP": 4}', 'f:1:2: unknown setting "NCCLRUN_NP"; did you mean "np"?'],
    ['{"dry-run": true}', 'f:1:2: unknown setting "dry-run"'],
    ['{"np": [1, 2]}', 'f:1:8: "np" is [1, 2]; a string, a number, true or false is wanted'],
    ['{"np": {}}', 'f:1:8: "np" is {}'],
    ['{"export": [{}]}', 'f:1:12: "export" is [{}]; a string or an array of strings'],
  ])('the settings %s are rejected with their position', (content, message) => {
    expect(usage(() => layerOfJson(content, 'f', options, null))).toContain(message);
  });
});

const normal = (argv: readonly string[], environment: Readonly<Record<string, string>> = {}) => {
  const { settings, words, further } = read(argv, environment);
  return shellLine(normalisedCommand(runCommandLine, settings, words, further));
};

describe('the normalised command', () => {
  test.each<[string[], string]>([
    [['-np', '4', 'prog', '-n', '7'], 'ncclrun -n 4 prog -n 7'],
    [['-hosts', 'a:2,b', '-ppn', '2', 'prog'], 'ncclrun -N 2 -H a:2,b prog'],
    [
      ['-genv', 'A', "it's", '-l', '--oversubscribe', 'prog', 'a b', '$x'],
      `ncclrun --oversubscribe -x 'A=it'\\''s' --tag-output=rank prog 'a b' '$x'`,
    ],
    [['--dry-run', '--json', '--grace=5', '--', '-odd'], 'ncclrun --grace 5 -- -odd'],
    [['--oversubscribe=0', 'prog', ''], "ncclrun prog ''"],
    [['--', 'prog', ':'], 'ncclrun -- prog :'],
    [['-np', '1', 'a', ':', '-np', '2', '-wd', '/d', 'b', 'x'], 'ncclrun -n 1 a : -n 2 --wdir /d b x'],
    [['a', ':', '-genv', 'A', '1', 'b', ':', '--', 'c', ':'], 'ncclrun -x A=1 a : -x A=1 b : -x A=1 -- c :'],
  ])('the options %o are printed in their normal form', (argv, line) => {
    expect(normal(argv)).toBe(line);
  });

  test('-H of one program makes every -H apply to its own program', () => {
    const { hostList, programs } = requestOf(['-H', 'a', 'p', ':', '-H', 'b', 'q', ':', 'r']);
    expect([hostList, ...programs.map((program) => program.hostList)]).toEqual(['a,b', 'a', 'b', null]);
    const elsewhere = requestOf(['p', ':', '-H', 'b', 'q'], { NCCLRUN_HOST: 'a,b' });
    expect([elsewhere.hostList, ...elsewhere.programs.map((program) => program.hostList)]).toEqual(['a,b', null, 'b']);
    const shared = requestOf(['-H', 'a,b', 'p', ':', 'q']);
    expect([shared.hostList, ...shared.programs.map((program) => program.hostList)]).toEqual(['a,b', null, null]);
  });

  test.each([
    [['--map-by', 'ppr:2:node', '-N', '3', 'p'], /-N 3 and --map-by ppr:2:node both say/],
    [['--map-by', 'seq', 'p', ':', '-N', '3', 'q'], /-N 3 and --map-by seq both say/],
    [['--rank-by', 'numa', 'p'], /add --map-by numa/],
    [['-N', 'gpus', 'p'], /a whole number from 1 to 1000000 or gpu is wanted/],
  ])('the options %j contradict each other', (argv, message) => {
    expect(usage(() => requestOf(argv))).toMatch(message);
  });

  test('the normalised command contains settings from the environment', () => {
    expect(normal(['prog'], { NCCLRUN_NP: '3' })).toBe('ncclrun -n 3 prog');
  });

  test('the normalised command gives the same request', () => {
    const first = ['-np', '4', '-x', 'A', '-H', 'a', '-genv', 'B', '1 2', '-l', '--timeout=3', 'prog', ':'];
    const argv = [...first, '-H', 'b', 'second', ':', '--', '-third', ':', '-n'];
    const { settings, words, further } = read(argv);
    const again = normalisedCommand(runCommandLine, settings, words, further).slice(1);
    expect(requestOf(again)).toEqual(requestOf(argv));
  });
});

test('perf reads -f as factor, -d as type and -o as operator', () => {
  const argv = [
    'all_reduce',
    '-n',
    '4',
    '-b',
    '8',
    '-e',
    '64M',
    '-f',
    '4',
    '-d',
    'double',
    '-o',
    'max',
    '--hostfile',
    'h',
  ];
  const { settings } = readCommandLine<JobOptionName | MeasureOptionName>(argv, perfCommandLine, nowhere);
  expect([settings.bytes('begin'), settings.bytes('end'), settings.integer('factor')]).toEqual([8, 64 * 1024 ** 2, 4]);
  expect([settings.text('type'), settings.text('op'), settings.text('hostfile')]).toEqual(['double', 'max', 'h']);
  expect(settings.integer('iters')).toBe(20);
});

test.each([
  ['8', 8],
  ['0', 0],
  ['64K', 65_536],
  ['64k', 65_536],
  ['1.5M', 1_572_864],
  ['2GiB', 2_147_483_648],
  ['1GB', 1_073_741_824],
  ['1T', 1_099_511_627_776],
  ['', null],
  ['K', null],
  ['-1', null],
  ['1.3', null],
  ['1e3', null],
  ['8 K', null],
  ['9999999999T', null],
])('parseBytes reads the size "%s" as %s bytes', (text, bytes) => {
  expect(parseBytes(text)).toBe(bytes);
});

test('editDistance counts a swap as one edit', () => {
  expect(editDistance('hotsfile', 'hostfile')).toBe(1);
  expect(editDistance('', 'abc')).toBe(3);
  expect(editDistance('kitten', 'sitting')).toBe(3);
  expect(nearest('--hots', ['--host', '--hostfile'])).toBe('--host');
  expect(nearest('--nothing-like-it', ['--host', '--hostfile'])).toBeNull();
});

test('the help names every flag and every variable after an example', () => {
  const text = helpText('run');
  const short = shortHelpText(80).split('\n');
  expect(short.length).toBeLessThanOrEqual(66);
  expect(short.findIndex((line) => line.startsWith('Commands'))).toBeLessThan(10);
  expect(short.filter((line) => line.length > 80)).toEqual([]);
  for (const { flags, environment, help } of runCommandLine.options) {
    for (const word of [...flags, ...environment, help]) expect(text).toContain(word);
  }
  expect(text.split('\n')[0]).toContain('ncclrun -n 4');
  expect(helpText('perf')).toContain('--minbytes');
});

test('the help fits the width of the terminal', () => {
  const lines = helpText('run', 60).split('\n');
  // Examples and the table of commands stay as they are.
  const long = lines.filter((line) => line.length > 60 && line.trim().includes(' ') && !/^ {2}ncclrun/u.test(line));
  expect(long).toEqual([]);
  expect(lines.join(' ').replaceAll(/\s+/gu, ' ')).toBe(helpText('run').replaceAll(/\s+/gu, ' '));
});
