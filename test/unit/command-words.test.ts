/** The words of commands: what each reads and refuses, and what it prints about itself. */
import { describe, expect, it } from 'vitest';
import { completion } from '../../launcher/cli/commands/completion.ts';
import { helpCommand, helpText } from '../../launcher/cli/commands/help.ts';
import { man } from '../../launcher/cli/commands/man.ts';
import { ps } from '../../launcher/cli/commands/ps.ts';
import { versionCommand } from '../../launcher/cli/commands/version.ts';
import { commandTable } from '../../launcher/cli/command-table.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import { argumentText, defaultText, groupsOf } from '../../launcher/cli/option-groups.ts';
import { readWords } from '../../launcher/cli/read-words.ts';
import { installedVersion } from '../../launcher/local/host.ts';
import { FailureError } from '../../launcher/model/failure-error.ts';
import { captured, refusal } from '../rig/captured.ts';
import { expectText } from '../rig/expected.ts';

const read = async (words: string) => {
  const {
    asked,
    settings,
    words: left,
  } = await readWords<'json' | 'help' | 'kernels'>(words.split(' ').filter(Boolean), {
    ...commandTable.help,
    line: {
      command: 'ps',
      words: 'words',
      options: [
        ...commandTable.ps.line.options,
        ...commandTable.build.line.options.filter(({ name }) => name === 'kernels'),
      ],
    },
    words: { type: 'files' },
  });
  return [asked, settings.flag('json'), settings.text('kernels'), left];
};

describe('the words of a command', () => {
  it.each<[string, unknown[]]>([
    ['', [null, false, null, []]],
    ['--json a 007', [null, true, null, ['a', '007']]],
    ['--kernels 80 --kernels 90 x', [null, false, '90', ['x']]],
    ['--kernels=80', [null, false, '80', []]],
    ['x -- --json', [null, false, null, ['x', '--json']]],
    ['--help --json', ['help', true, null, []]],
    ['-h', ['help', false, null, []]],
  ])('"%s" is read as %j', async (words, expected) => {
    expect(await read(words)).toEqual(expected);
  });

  it.each([
    ['--jsn', '--jsn'],
    ['-ef', 'unknown option -ef'],
    ['-q', '-q'],
    ['--kernels', '--kernels needs a value; write --kernels'],
  ])('"%s" is refused', async (words, message) => {
    const error: unknown = await read(words).catch((thrown: unknown) => thrown);
    if (!(error instanceof FailureError) || error.failure.type !== 'usage') throw new Error('not refused');
    expect(`${error.failure.message}; ${error.failure.remedy}`).toContain(message);
  });

  it.each<[string, (argv: readonly string[]) => Promise<number>, string]>([
    ['completion', completion, 'no shell given; write: ncclrun completion bash|zsh|fish'],
    ['completion zhs', completion, 'unknown shell "zhs"; did you mean zsh?'],
    ['completion tcshell', completion, 'unknown shell "tcshell"; known: bash, zsh, fish'],
    ['completion bash x', completion, '"x" after bash has no meaning; write: ncclrun completion bash|zsh|fish'],
    ['help prf', helpCommand, 'unknown command "prf"; did you mean perf?'],
    ['version x', versionCommand, '"x" after version has no meaning; write: ncclrun version'],
    ['man x', man, '"x" after man has no meaning; write: ncclrun man'],
    ['ps x', ps, '"x" after ps has no meaning; write: ncclrun ps [--json]'],
  ])('ncclrun %s is refused', async (words, command, message) => {
    expect(await refusal(() => command(words.split(' ').slice(1)))).toBe(message);
  });

  it('the version is that of the installation', async () => {
    expect(await captured(() => versionCommand([]))).toEqual({
      status: 0,
      stdout: `ncclrun ${installedVersion()}\n`,
      stderr: '',
    });
  });
});

const option = (name: string) => {
  const found = runCommandLine.options.find((one) => one.name === name);
  if (found === undefined) throw new Error(name);
  return found;
};

describe('what a command prints about itself', () => {
  it.each(['bash', 'zsh', 'fish'])('the completion script for %s is the expected one', async (shell) => {
    const { stdout } = await captured(() => completion([shell]));
    const lines = stdout.split('\n').filter((line) => /\bhosts\b|tag-output|--from|\bchoices\b|^\S+ *\(\)/u.test(line));
    await expectText(`words/completion.${shell}`, `${lines.join('\n')}\n`);
  });

  it('the manual page is the expected one', async () => {
    await expectText(
      'words/manual.roff',
      (await captured(() => man([]))).stdout.replaceAll(installedVersion(), 'VERSION'),
    );
  });

  it.each(['hosts', 'ps'] as const)('the help of %s is the expected one', async (command) => {
    const { stdout } = await captured(() => helpCommand([command]));
    await expectText(`words/help-${command}.txt`, stdout);
    expect(stdout).toBe(helpText(command, 120));
  });

  it.each<[string, (argv: readonly string[]) => Promise<number>]>([
    ['completion', completion],
    ['help', helpCommand],
    ['man', man],
    ['ps', ps],
    ['version', versionCommand],
  ])('%s --help prints its usage', async (name, command) => {
    const { stdout } = await captured(() => command(['--help']));
    expect(stdout).toMatch(new RegExp(`^usage: ncclrun ${name}\\b`, 'mu'));
  });

  it('options have groups, arguments and defaults', () => {
    expect(['json', 'np', 'tag-output'].map((name) => argumentText(option(name)))).toEqual([
      '',
      ' N',
      '[=rank|host|none]',
    ]);
    expect(['np', 'grace', 'rsh'].map((name) => defaultText(option(name)))).toEqual([
      '',
      ' (default: 5)',
      expect.any(String),
    ]);
    expect(groupsOf([option('np'), option('json')]).map(({ title, options }) => [title, options.length])).toEqual([
      ['Ranks', 1],
      ['Output', 1],
    ]);
  });
});
