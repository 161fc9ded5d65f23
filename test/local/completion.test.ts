/** The completion scripts in the shells themselves. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf, findProgram } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-completion-'));
const script = (shell: string) => join(directory, `ncclrun.${shell}`);

beforeAll(async () => {
  writeFileSync(join(directory, 'hosts.txt'), '');
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { status, stdout, stderr } = await Command.run(['completion', shell]);
    expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    writeFileSync(script(shell), stdout);
  }
});
afterAll(() => rmSync(directory, { recursive: true }));

/** What a shell would offer for `line` with the cursor at its end. */
type Offers = (line: string) => string[];

function run(program: string, argv: readonly string[]): string[] {
  const environment = { ...process.env, HOME: directory, TERM: 'dumb' };
  const text = execFileSync(program, argv, { cwd: directory, encoding: 'utf8', env: environment, timeout: 30_000 });
  return text.split('\n').filter((line) => line !== '');
}

const bash: Offers = (line) => {
  // As readline splits a line: at blanks, and around = and :.
  const words = line.split(/(?:\s+)|([=:])/u).filter((word) => word !== undefined && word !== '');
  if (/\s$/u.test(line)) words.push('');
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const lines = [
    `source ${script('bash')}`,
    `COMP_LINE='${line}' COMP_POINT=${line.length} COMP_WORDS=(${quoted}) COMP_CWORD=${words.length - 1}`,
    '_ncclrun',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ];
  return run('bash', ['--norc', '-c', lines.join('\n')]);
};

const fish: Offers = (line) => {
  const offers = run('fish', ['--no-config', '-c', `source ${script('fish')}; complete -C '${line}'`]);
  return offers.map((offer) => offer.split('\t')[0] ?? '');
};

function behaves(offers: Offers): void {
  it('the shell offers commands and options first', () => {
    expect(offers('ncclrun conf')[0]).toBe('config');
    expect(offers('ncclrun ')[0]).toBe('perf');
    expect(offers('ncclrun tune --colle')).toEqual(['--collective']);
    expect(offers('ncclrun --hostf')).toEqual(['--hostfile']);
    expect(offers('ncclrun -n 4 --tim').toSorted()).toEqual(['--timeout', '--timestamp-output']);
  });

  it('the shell offers the values of an option', () => {
    expect(offers('ncclrun --bind-to ')).toEqual(['none', 'core', 'numa', 'gpu']);
    expect(offers('ncclrun -n 2 --rank-by n')).toEqual(['node', 'numa']);
    expect(offers('ncclrun --hostfile ho')).toEqual(['hosts.txt']);
    expect(offers('ncclrun -f hos')).toEqual(['hosts.txt']);
  });

  it('the shell offers the arguments of a command', () => {
    expect(offers('ncclrun completion ')).toEqual(['bash', 'zsh', 'fish']);
    expect(offers('ncclrun perf ')).toContain('all_reduce');
    expect(offers('ncclrun perf all_reduce --minb')).toEqual(['--minbytes']);
    expect(offers('ncclrun perf all_reduce -d d')).toEqual(['double']);
    expect(offers('ncclrun config --expl')).toEqual(['--explain']);
  });

  it('the shell offers no ncclrun options after the program', () => {
    expect(offers('ncclrun -n 4 cat --hostf')).not.toContain('--hostfile');
    expect(offers('ncclrun -genv A 1 cat --hostf')).not.toContain('--hostfile');
    expect(offers('ncclrun -H a:2,b:2 -x A=1 cat --hostf')).not.toContain('--hostfile');
    expect(offers('ncclrun -H a:2,b:2 -x A=1 --hostf')).toEqual(['--hostfile']);
    expect(offers('ncclrun -n 4 con')).not.toContain('config');
  });
}

const missing = (shell: string) => (findProgram(shell) === null ? `${shell} is not installed` : null);

describeIf(missing('bash'), 'bash', () => {
  behaves(bash);

  it('bash completes after = and : although it splits words there', () => {
    expect(bash('ncclrun --tag-output=h')).toEqual(['host']);
    expect(bash('ncclrun --tag-output=')).toEqual(['auto', 'rank', 'host', 'none']);
    expect(bash('ncclrun -n=4 --hostfile=hos')).toEqual(['hosts.txt']);
  });
});

describeIf(missing('fish'), 'fish', () => {
  behaves(fish);
  it('fish completes after =', () => {
    expect(fish('ncclrun --tag-output=h')).toEqual(['--tag-output=host']);
  });
  it('fish offers commands first however many programs and files there are', () => {
    const programs = join(directory, 'programs');
    mkdirSync(programs);
    const shell = findProgram('fish') ?? '';
    const first = Array.from({ length: 24 }, (_, step) => {
      for (let one = 0; one < 7; one++) writeFileSync(join(programs, `p${step}-${one}`), '', { mode: 0o755 });
      const words = ['--no-config', '-c', `set PATH ${programs}; source ${script('fish')}; complete -C 'ncclrun '`];
      return run(shell, words)[0]?.split('\t')[0];
    });
    expect(new Set(first)).toEqual(new Set(['perf']));
  });
});

/** Types `line` and a tab into an interactive zsh; resolves with the line as completed. */
function inZsh(line: string): string {
  const lines = [
    'zmodload zsh/zpty',
    'zpty shell zsh -f -i',
    `zpty -w shell 'PS1= PROMPT_EOL_MARK=; autoload -Uz compinit; compinit -D -u; source ${script('zsh')}'`,
    `zpty -w shell 'show() { print -r -- "<$BUFFER>" }; zle -N show; bindkey "^X" show; setopt no_beep no_list_ambiguous'`,
    `zpty -w shell 'print ready''!'`,
    `zpty -r -m shell output '*ready!*'`,
    `zpty -w -n shell $'${line}\\t\\x18'`,
    `zpty -r -m shell output '*<ncclrun*>*'`,
    'print -r -- "$output"',
    'zpty -d shell',
  ];
  const text = run('zsh', ['-f', '-c', lines.join('\n')]).join('\n');
  return /<(ncclrun[^>]*)>/u.exec(text)?.[1] ?? text;
}

describeIf(missing('zsh'), 'zsh', () => {
  it.each([
    ['ncclrun conf', 'ncclrun config '],
    ['ncclrun --hostf', 'ncclrun --hostfile='],
    ['ncclrun -n 2 --rank-by no', 'ncclrun -n 2 --rank-by node '],
    ['ncclrun --tag-output=h', 'ncclrun --tag-output=host '],
    ['ncclrun --hostfile ho', 'ncclrun --hostfile hosts.txt '],
    ['ncclrun completion f', 'ncclrun completion fish '],
    ['ncclrun perf all_r', 'ncclrun perf all_reduce '],
    ['ncclrun perf all_reduce --minb', 'ncclrun perf all_reduce --minbytes='],
    ['ncclrun config --expl', 'ncclrun config --explain '],
    ['ncclrun -n 4 cat ho', 'ncclrun -n 4 cat hosts.txt '],
    ['ncclrun -n 4 nosuchprogram --hostf', 'ncclrun -n 4 nosuchprogram --hostf'],
  ])('zsh completes "%s"', (line, whole) => {
    expect(inZsh(line).trimEnd()).toBe(whole.trimEnd());
  });
});
