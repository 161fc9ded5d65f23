/** The commands that start no job, settings from everywhere, and what a start does without. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import * as v from 'valibot';
import { afterAll, describe, expect, it } from 'vitest';
import { commandNames } from '../../launcher/model/command-names.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import { describeIf, findProgram } from '../rig/capability.ts';
import { Command, type Outcome } from '../rig/command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-command-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** Runs in `directory` with settings of its own. */
function run(argv: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<Outcome> {
  return Command.run(argv, { directory, environment: { XDG_CONFIG_HOME: join(directory, 'config'), ...environment } });
}

async function output(argv: readonly string[], environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const { status, stdout, stderr } = await run(argv, environment);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout;
}

describe('help', () => {
  it('the help begins with two examples and lists every command', async () => {
    const help = await output(['--help']);
    expect(help.split('\n', 4).map((line) => line.slice(0, 10))).toEqual([
      '  ncclrun ',
      '  ncclrun ',
      '',
      'usage: ncc',
    ]);
    const all = await output(['help', 'all']);
    for (const name of commandNames) expect(all).toContain(`  ncclrun ${name} `);
    expect(help).toContain('  ncclrun batch ');
    expect(await output(['help'])).toBe(help);
    expect(await output(['-h'])).toBe(help);
  });

  it.each(commandNames)('the help of %s begins with two examples', async (name) => {
    const help = await output(['help', name]);
    expect(help).toMatch(/^ {2}\S.*\n {2}\S.*\n\nusage: ncclrun /u);
    if (name !== 'help') expect(await output([name, '--help'])).toBe(help);
  });

  it('the first example of the help runs unchanged', async () => {
    const [line = ''] = (await output(['--help'])).split('\n', 1);
    const { status } = await run(line.trim().split(' ').slice(1));
    expect(status).toBe(0);
  });
});

describe('unknown words', () => {
  it.each([
    [['help', 'cofnig'], 'unknown command "cofnig"', 'did you mean config?'],
    [['completion', 'bsh'], 'unknown shell "bsh"', 'did you mean bash?'],
    [['completion'], 'no shell given', 'write: ncclrun completion bash|zsh|fish'],
    [['completion', 'bash', 'zsh'], '"zsh" after bash has no meaning', 'ncclrun completion'],
    [['version', 'x'], '"x" after version has no meaning', 'write: ncclrun version'],
    [['man', '--hlep'], 'unknown option --hlep', 'did you mean --help?'],
    [['config', 'np'], '"np" after config has no meaning', 'write: ncclrun config'],
    [['config', '--explian'], 'unknown option --explian', 'did you mean --explain?'],
    [['--bind-to', 'nuna', 'true'], '--bind-to is "nuna"', 'did you mean numa?'],
    [['--on-failure', 'shrnk', 'true'], '--on-failure is "shrnk"', 'did you mean shrink?'],
  ])('ncclrun %j fails with a suggestion', async (argv, sentence, remedy) => {
    const { status, stdout, stderr } = await run(argv);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(sentence);
    expect(stderr).toContain(remedy);
  });

  it('the launcher suggests a command only where no such program exists', async () => {
    const wrong = await run(['confg']);
    expect(wrong.status).toBe(127);
    expect(wrong.stderr).toContain('did you mean: ncclrun config?');
    writeFileSync(join(directory, 'confg'), '#!/bin/sh\necho mine\n', { mode: 0o755 });
    expect(await output(['confg'], { NCCLRUN_NP: '1', PATH: `${directory}:${process.env['PATH'] ?? ''}` })).toBe(
      'mine\n',
    );
    rmSync(join(directory, 'confg'));
    const behind = await run(['-n', '2', 'completion', 'bash']);
    expect(behind.status).toBe(127);
    expect(behind.stderr).toContain('a command comes first: ncclrun completion');
    expect((await run(['nothing-like-a-command'])).stderr).not.toContain('did you mean');
  });

  it('the launcher runs a file of the working directory only by its path, and suggests that path', async () => {
    writeFileSync(join(directory, 'train'), '');
    const { status, stderr } = await run(['train']);
    expect(status).toBe(127);
    expect(stderr).toContain(`it is no command, but a file in ${directory}: write ./train`);
  });
});

const explained = v.object({
  schemaVersion: v.literal(1),
  settings: v.array(
    v.strictObject({
      name: v.string(),
      values: v.array(v.string()),
      origin: v.nullable(v.picklist(['flag', 'environment', 'file', 'default'])),
      source: v.nullable(v.string()),
      overridden: v.array(v.strictObject({ source: v.string(), values: v.array(v.string()) })),
    }),
  ),
  files: v.array(v.strictObject({ path: v.string(), found: v.boolean(), refused: v.nullable(v.string()) })),
  refused: v.array(v.strictObject({ name: v.string(), value: v.string(), source: v.string(), reason: v.string() })),
});

const write = (file: string, settings: object) => writeFileSync(file, JSON.stringify(settings));

/** The settings by name, as `config --json` tells them. */
async function explain(argv: readonly string[], environment: NodeJS.ProcessEnv = {}) {
  const { settings } = v.parse(explained, JSON.parse(await output(['config', '--json', ...argv], environment)));
  return (name: string) => settings.find((setting) => setting.name === name);
}

describe('settings', () => {
  const user = join(directory, 'config/ncclrun/config.json');
  mkdirSync(join(directory, 'config/ncclrun'), { recursive: true });
  const here = join(directory, 'ncclrun.json');

  it('a setting comes from the source with the highest precedence', async () => {
    write(user, { np: 1, grace: 11, timeout: 111, wdir: '/usr' });
    write(here, { np: 2, grace: 22, timeout: 222 });
    const setting = await explain(['-np', '4'], { NCCLRUN_NP: '3', NCCLRUN_GRACE: '33' });
    expect(setting('np')).toEqual({
      name: 'np',
      values: ['4'],
      origin: 'flag',
      source: '-np',
      overridden: [
        { source: 'NCCLRUN_NP', values: ['3'] },
        { source: 'ncclrun.json:1:7', values: ['2'] },
        { source: `${user}:1:7`, values: ['1'] },
      ],
    });
    expect(setting('grace')).toMatchObject({ values: ['33'], origin: 'environment', source: 'NCCLRUN_GRACE' });
    expect(setting('timeout')).toMatchObject({ values: ['222'], origin: 'file' });
    expect(setting('wdir')).toMatchObject({ values: ['/usr'], origin: 'file' });
    expect(setting('stdin')).toMatchObject({ values: ['0'], origin: 'default', source: 'default' });
    expect(setting('hostfile')).toMatchObject({ values: [], origin: null, source: null });
  });

  it('ncclrun config lists every setting', async () => {
    const setting = await explain([]);
    const names = runCommandLine.options.filter(({ environment }) => environment.length > 0).map(({ name }) => name);
    expect(names.filter((name) => setting(name) === undefined)).toEqual([]);
  });

  it('ncclrun config --explain prints a table of settings and sources', async () => {
    write(here, { np: 2 });
    rmSync(user);
    const table = await output(['config', '--explain', '--timeout', '9']);
    expect(table).toMatch(/^np +2 +ncclrun\.json:1:7$/mu);
    expect(table).toMatch(/^timeout +9 +--timeout$/mu);
    expect(table).toContain('option, environment, ncclrun.json, ');
    expect(await output(['config'])).toMatch(/^np +2$/mu);
  });

  it('ncclrun config explains why it ignores a setting of a project file', async () => {
    write(here, { np: 2, rsh: './ssh', export: ['A=1', 'LD_PRELOAD=./x.so'] });
    const reported = v.parse(explained, JSON.parse(await output(['config', '--json'])));
    expect(reported.files).toEqual([
      { path: 'ncclrun.json', found: true, refused: null },
      { path: user, found: false, refused: null },
    ]);
    expect(reported.refused).toEqual([
      {
        name: 'rsh',
        value: './ssh',
        source: 'ncclrun.json:1:15',
        reason: 'a project file may not decide which programs run',
      },
      {
        name: 'export',
        value: 'LD_PRELOAD=./x.so',
        source: 'ncclrun.json:1:39',
        reason: expect.stringContaining('variables of the dynamic loader'),
      },
    ]);
    expect(await output(['config', '--explain'])).toContain(
      'ignored: "rsh": "./ssh" (ncclrun.json:1:15): a project file may not decide which programs run\n',
    );
    const { stderr } = await run(['config']);
    expect(stderr.split('\n')[0]).toBe(
      `ncclrun: ignored "rsh": "./ssh" in ncclrun.json:1:15: a project file may not decide which programs run; set it with --rsh, with NCCLRUN_RSH or in ${user}`,
    );
  });

  it('ncclrun config explains why it ignores a settings file that others may change', async () => {
    write(here, { np: 7 });
    chmodSync(here, 0o666);
    const reported = v.parse(explained, JSON.parse(await output(['config', '--json'])));
    const reason = 'every user may write to it (mode 0666)';
    expect(reported.files[0]).toEqual({ path: 'ncclrun.json', found: true, refused: reason });
    expect(reported.settings.find(({ name }) => name === 'np')).toMatchObject({ values: [], origin: null });
    expect(await output(['config', '--explain'])).toContain(`ignored: ncclrun.json: ${reason}\n`);
    rmSync(here);
  });

  it('the events of a job contain a notice about ignored settings', async () => {
    write(here, { rsh: './ssh', np: 2 });
    const { status, stderr } = await run(['--events', 'events', '-n', '1', '/bin/true']);
    expect(status).toBe(0);
    const message = /^ncclrun: (ignored "rsh": .*)\n$/u.exec(stderr)?.[1];
    const [first = ''] = readFileSync(join(directory, 'events'), 'utf8').split('\n');
    expect(JSON.parse(first)).toMatchObject({ type: 'notice', message });
  });

  it('every command that reads settings reports the ignored ones once', async () => {
    write(here, { rsh: './ssh', np: 2 });
    const commands = [
      ['--dry-run', '/bin/true'],
      ['--explain'],
      ['hosts'],
      ['topo'],
      ['plan', '--ranks', '2'],
      ['perf', 'all_reduce', '--dry-run'],
      ['tune', '--dry-run'],
      ['sbatch', '--print', '--', '/bin/true'],
      ['-n', '1', '--map-by', 'nonsense', '/bin/true'],
    ];
    const reported = await Promise.all(
      commands.map(async (argv) => {
        const { stderr } = await run(argv, { NCCLRUN_DEVICE: 'host' });
        return { argv, lines: stderr.split('\n').filter((line) => line.includes('ignored "rsh"')).length };
      }),
    );
    expect(reported).toEqual(commands.map((argv) => ({ argv, lines: 1 })));
  });

  it('a job uses the settings of files and environment', async () => {
    write(here, { np: 3, 'tag-output': 'none' });
    expect(await output(['/bin/echo', 'x'])).toBe('x\nx\nx\n');
    expect(await output(['/bin/echo', 'x'], { NCCLRUN_NP: '2' })).toBe('x\nx\n');
    expect(await output(['-n', '1', '/bin/echo', 'x'], { NCCLRUN_NP: '2' })).toBe('x\n');
  });

  it('the launcher shows the position of an error in a settings file', async () => {
    writeFileSync(here, '{\n  "np": 2,\n  "hotsfile": "hosts"\n}\n');
    const { status, stderr } = await run(['/bin/true']);
    expect(status).toBe(2);
    expect(stderr).toBe(
      'ncclrun: ncclrun.json:3:3: unknown setting "hotsfile"\n      "hotsfile": "hosts"\n      ~~~~~~~~~~\n  next: did you mean "hostfile"?\n',
    );
    writeFileSync(here, '{\n  "np": "two"\n}\n');
    expect((await run(['config'])).stderr).toContain('ncclrun.json:2:9: "np" is "two"');
    rmSync(here);
  });

  it('the launcher suggests the right spelling of an unknown NCCLRUN variable', async () => {
    const { status, stderr } = await run(['config'], { NCCLRUN_HOSTFIL: 'x' });
    expect(status).toBe(0);
    expect(stderr).toContain('NCCLRUN_HOSTFIL is set but has no meaning\n  next: did you mean NCCLRUN_HOSTFILE?');
  });
});

const noGroff = findProgram('groff') === null ? 'groff is not installed' : null;
describeIf(noGroff, 'the manual page', () => {
  const page = join(directory, 'ncclrun.1');

  it('groff formats the manual page without warnings', async () => {
    writeFileSync(page, await output(['man']));
    const warnings = execFileSync('sh', ['-c', `groff -man -ww -b -z -Tutf8 ${page} 2>&1`], { encoding: 'utf8' });
    expect(warnings).toBe('');
    const plain = ['-P-c', '-P-b', '-P-o', '-P-u'];
    const text = execFileSync('groff', ['-man', '-Tutf8', '-rLL=78n', ...plain, page], { encoding: 'utf8' });
    for (const { flags } of runCommandLine.options) for (const flag of flags) expect(text).toContain(flag);
    for (const name of commandNames) expect(text).toContain(`ncclrun ${name}`);
    expect(text).toContain("'w0@w1:0,2'");
  });

  it('ncclrun man prints the manual page that the build wrote', async () => {
    const built = readFileSync(join(import.meta.dirname, '../../dist/man/ncclrun.1'), 'utf8');
    expect(await output(['man'])).toBe(built);
  });
});

/** The files of ours that were read, by V8's own account. `run`: ncclrun, which writes it in Node's own end with this environment. */
async function bundlesOf(run: (environment: NodeJS.ProcessEnv) => unknown): Promise<string[]> {
  const coverage = mkdtempSync(join(directory, 'coverage-'));
  await run({ NODE_V8_COVERAGE: coverage, NCCLRUN_DEBUG: '1' });
  const schema = v.object({ result: v.array(v.object({ url: v.string() })) });
  const scripts = readdirSync(coverage).flatMap(
    (file) => v.parse(schema, JSON.parse(readFileSync(join(coverage, file), 'utf8'))).result,
  );
  return scripts.map(({ url }) => basename(url)).filter((name) => name.endsWith('.bundle.cjs'));
}

/** What a job does after such a time, one that is short does not. */
const MOMENT_MS = 50;

describe('the modules that the launcher loads at the start', () => {
  it('a job loads no package and no Node module that it does not need', async () => {
    const probe = join(directory, 'probe.cjs');
    const listed = join(directory, 'modules');
    // Where processes are slow, a job would read what it needs once it has run for a moment: no such moment comes.
    writeFileSync(
      probe,
      `process.on('exit', () => require('node:fs').writeFileSync(${JSON.stringify(listed)}, process.moduleLoadList.join('\\n')));
      const { setTimeout: real } = globalThis;
      globalThis.setTimeout = (run, delay, ...rest) => real(run, delay >= ${MOMENT_MS} ? 60_000 : delay, ...rest);`,
    );
    const main = join(import.meta.dirname, '../../dist/bundle/main.cjs');
    const words = [`--require=${probe}`, main, '-n', '2', '/bin/true'];
    const read = await bundlesOf((changes) =>
      execFileSync(process.execPath, words, { stdio: 'ignore', env: { ...process.env, ...changes } }),
    );
    expect(read).toEqual(['main.bundle.cjs']);
    const modules = readFileSync(listed, 'utf8').split('\n');
    const heavy = ['child_process', 'net', 'tty', 'http', 'crypto', 'worker_threads', 'readline'];
    expect(modules.filter((name) => heavy.some((word) => name === `NativeModule ${word}`))).toEqual([]);
  });

  it('a command that starts no job loads its part and yargs', async () => {
    expect((await bundlesOf((changes) => output(['man'], changes))).toSorted()).toEqual(
      ['main', 'commands', 'several', 'yargs'].map((name) => `${name}.bundle.cjs`).toSorted(),
    );
  });

  it('a job that goes on has loaded what it may need, should the installation be replaced meanwhile', async () => {
    const needed = ['hosts', 'planning', 'remote', 'report', 'verdicts'].map((name) => `${name}.bundle.cjs`);
    expect(await bundlesOf((changes) => output(['-n', '1', 'sleep', '0.7'], changes))).toEqual(
      expect.arrayContaining(needed),
    );
  });
});
