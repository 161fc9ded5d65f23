/** Values of options and mistakes in settings files at their borders. */
import { closeSync, mkdtempSync, openSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { JsonMistake, parseJsonSource, positionOf } from '../../launcher/cli/json-source.ts';
import { commandTable } from '../../launcher/cli/command-table.ts';
import { runCommandLine } from '../../launcher/cli/options.ts';
import type { CommandLine } from '../../launcher/model/option.ts';
import { isTerminal } from '../../launcher/model/terminal.ts';
import { parseBytes, parseInteger, parseSeconds, wanted } from '../../launcher/model/values.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-borders-'));
afterAll(() => rmSync(directory, { recursive: true }));

describe('a mistake in JSON', () => {
  it.each<[string, string]>([
    ['', '1:1+1 the file ends where a value is wanted'],
    ['{"a": 1\n\n', '1:8+1 the file ends where , or } is wanted'],
    ['[1', '1:3+1 the file ends where , or ] is wanted'],
    ['[', '1:2+1 the file ends where a value or ] is wanted'],
    ['{', '1:2+1 the file ends where "key" or } is wanted'],
    ['{"a"', '1:5+1 the file ends where : is wanted'],
    ['{"a": 1,', '1:9+1 the file ends where "key" is wanted'],
    ['1 22', '1:3+2 nothing may follow the value'],
    ['{\n  "a": x1-y,\r\n}', '2:8+4 text stands in double quotes: "x1-y"'],
    ['[,]', '1:2+1 a value is wanted, not ,'],
    ['{"a" 1}', '1:6+1 a : is wanted, not 1'],
    ['{"a": 1 "b"}', '1:9+3 a , or } is wanted, not "b"'],
    ['[1 "b"]', '1:4+3 a , or ] is wanted, not "b"'],
    ['{"a": 1,}', '1:9+1 no comma may stand before }'],
    ['{abc: 1}', '1:2+3 a key in double quotes is wanted, not abc'],
    ['{"a": "open\n}', '1:7+5 the string does not end on its line'],
    ['{\n  // note\n}', '2:3+7 JSON has no comments'],
    ['/* x */ 1', '1:1+9 JSON has no comments'],
    ['# note', '1:1+6 JSON has no comments'],
    ["['a']", '1:2+1 JSON wants double quotes'],
    ['[01]', '1:2+2 "01" is not JSON'],
    ['[é€]', '1:2+2 "é€" is not JSON'],
    ['"\\x"', '1:1+4 the string holds a wrong \\ or a control character'],
    [`${'['.repeat(101)}1`, '1:102+1 nested too deeply'],
    ['\uFEFF[x]', '1:3+1 text stands in double quotes: "x"'],
  ])('the mistake in %j is placed and named', (text, expected) => {
    try {
      parseJsonSource(text);
      expect.unreachable();
    } catch (error) {
      if (!(error instanceof JsonMistake)) throw error;
      const { line, column, length, text: shown } = positionOf('f', text, error.span);
      expect(`${line}:${column}+${length} ${error.message}`).toBe(expected);
      expect(shown).toBe(text.split(/\r?\n/u)[line - 1]);
    }
  });

  it('a hundred levels are not too deep, and a node knows where it stands', () => {
    expect(parseJsonSource(`${'['.repeat(100)}1${']'.repeat(100)}`)).toMatchObject({ start: 0, end: 201 });
    expect(parseJsonSource(' {"a": [1, "b"]} ')).toMatchObject({
      start: 1,
      end: 16,
      entries: [{ key: 'a', at: { start: 2, end: 5 }, value: { start: 7, end: 15 } }],
    });
    expect(parseJsonSource('{"a":{"b":{}}}')).toMatchObject({ start: 0, end: 14 });
  });
});

const names = ({ options }: CommandLine) => options.map(({ name }) => name);

describe('a value', () => {
  it.each<[string, number | null]>([
    ['0', 0],
    ['1k', 1024],
    ['1M', 1024 ** 2],
    ['1.5GiB', 1.5 * 1024 ** 3],
    ['2TB', 2 * 1024 ** 4],
    ['8B', 8],
    ['0.1', null],
    ['-1', null],
    ['9999T', null],
    ['1P', null],
    ['', null],
  ])('%s is %j bytes', (text, bytes) => {
    expect(parseBytes(text)).toBe(bytes);
  });

  it.each<[string, number | null]>([
    ['0', null],
    ['0.0', null],
    ['.5', 0.5],
    ['2.', 2],
    ['2147483', 2_147_483],
    ['2147483.1', null],
    ['2147484', null],
    ['1e3', null],
  ])('%s is %j seconds', (text, seconds) => {
    expect(parseSeconds(text)).toBe(seconds);
  });

  it.each<[string, number | null]>([
    ['2', null],
    ['3', 3],
    ['5', 5],
    ['6', null],
    ['4.0', null],
    ['+4', null],
  ])('%s is %j where 3 to 5 are wanted', (text, value) => {
    expect(parseInteger(text, { minimum: 3, maximum: 5 })).toBe(value);
  });

  it('a refusal says what is wanted', () => {
    expect(wanted({ type: 'choice', choices: ['a'] }, 'x')).toBe('a');
    expect(wanted({ type: 'choice', choices: ['a', 'b'] }, 'x')).toBe('one of a, b');
    expect(wanted({ type: 'text' }, '')).toBe('something that is not empty');
    expect(wanted({ type: 'integer', minimum: 1, maximum: 2, words: ['gpu'] }, '3')).toBe(
      'a whole number from 1 to 2 or gpu',
    );
    expect(wanted({ type: 'integer', minimum: 1, maximum: 2, words: ['gpu'] }, 'gpu')).toBeNull();
    expect(wanted({ type: 'integer', minimum: 1, maximum: 2 }, 'gpu')).toBe('a whole number from 1 to 2');
  });

  it.each<[string, CommandLine, string, number, number]>([
    ['run', runCommandLine, 'np', 1, 1_000_000],
    ['run', runCommandLine, 'npernode', 1, 1_000_000],
    ['run', runCommandLine, 'simulate-hosts', 1, 1000],
    ['run', runCommandLine, 'radix', 0, 1000],
    ['run', runCommandLine, 'max-restarts', 0, 1000],
    ['perf', commandTable.perf.line, 'factor', 2, 1_048_576],
    ['perf', commandTable.perf.line, 'iters', 1, 1_000_000_000],
    ['perf', commandTable.perf.line, 'warmup', 0, 1_000_000_000],
    ['perf', commandTable.perf.line, 'root', 0, 1_048_576],
    ['run', runCommandLine, 'collnet', 0, 64],
    ['tune', commandTable.tune.line, 'rounds', 1, 1000],
    ['tune', commandTable.tune.line, 'max-spread', 0, 100_000],
    ['tune', commandTable.tune.line, 'max-load', 0, 100],
    ['plan', commandTable.plan.line, 'simulate-hosts', 1, 1000],
    ['plan', commandTable.plan.line, 'collnet', 0, 64],
    ['replay', commandTable.replay.line, 'replayed-rank', 0, 16_777_215],
    ['replay', commandTable.replay.line, 'last', 1, 1_000_000],
    ['plan', commandTable.plan.line, 'nodes', 1, 1_000_000],
    ['plan', commandTable.plan.line, 'ranks', 1, 16_777_216],
    ['hosts', commandTable.hosts.line, 'slots', 1, 65_536],
  ])('%s takes a number for %s from %i to %i', (_command, line, name, minimum, maximum) => {
    const option = line.options.find((one) => one.name === name);
    if (option === undefined) throw new Error(`no option is called ${name}`);
    const fits = [minimum - 1, minimum, maximum, maximum + 1].map(
      (value) => wanted(option.kind, String(value)) === null,
    );
    expect(fits).toEqual([false, true, true, false]);
  });

  it('programs after the first may have these options of their own', () => {
    const own = runCommandLine.options.filter(({ perProgram }) => perProgram === true);
    expect(own.map(({ name }) => name)).toEqual(['np', 'npernode', 'export', 'wdir', 'host']);
  });

  it('each command takes the options of a job that concern it', () => {
    const has = (command: 'config' | 'tune' | 'hosts' | 'topo' | 'perf', name: string) =>
      names(commandTable[command].line).filter((one) => one === name).length;
    expect([has('config', 'explain'), has('config', 'dry-run'), has('config', 'np')]).toEqual([1, 0, 1]);
    expect([has('tune', 'plan'), has('tune', 'np'), has('perf', 'plan')]).toEqual([0, 1, 1]);
    expect([has('hosts', 'include'), has('hosts', 'np'), has('topo', 'rsh'), has('topo', 'np')]).toEqual([1, 0, 1, 0]);
    const hostfile = commandTable.perf.line.options.find(({ name }) => name === 'hostfile');
    expect(hostfile?.flags).not.toContain('-f');
    expect(names(commandTable.perf.line).filter((name) => name === 'hostfile')).toHaveLength(1);
  });
});

const isTerminalAt = (path: string): boolean => {
  const descriptor = openSync(path, 'r');
  try {
    return isTerminal(descriptor);
  } finally {
    closeSync(descriptor);
  }
};

it('the number of a device says whether it is a terminal', () => {
  const file = join(directory, 'file');
  writeFileSync(file, '');
  expect(['/dev/ptmx', '/dev/null', file].map(isTerminalAt)).toEqual([true, false, false]);
  expect(isTerminal(999)).toBe(false);
});
