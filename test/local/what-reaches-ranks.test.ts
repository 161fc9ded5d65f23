/** What the user's shell gives to ncclrun reaches the ranks byte for byte, and does not disturb our own processes. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-reaches-'));
afterAll(() => rmSync(directory, { recursive: true }));

/** A script of bash in which `ncclrun` is our command. */
const bash = (script: string, environment: NodeJS.ProcessEnv = {}) =>
  Command.run(['-c', `ncclrun() { ${repository}/bin/ncclrun --tag-output=none "$@"; }; ${script}`], {
    program: 'bash',
    environment,
  });

describe('the environment of the user', () => {
  it('functions that bash exports run in the ranks', async () => {
    const script = 'foo() { echo "foo $1"; }; export -f foo; ncclrun -n 2 bash -c "foo bar"';
    expect(await bash(script)).toMatchObject({ status: 0, stdout: 'foo bar\nfoo bar\n', stderr: '' });
  });

  it('functions whose names are no variables of a shell run in the ranks', async () => {
    const script = '_module-raw() { echo "raw $1"; }; export -f _module-raw; ncclrun -n 1 bash -c "_module-raw x"';
    expect(await bash(script)).toMatchObject({ status: 0, stdout: 'raw x\n', stderr: '' });
  });

  it('variables with odd names reach the ranks', async () => {
    const odd = { 'a.b': 'dot', 'c-d': 'two\nlines', '1x': '', é: 'é' };
    const print = 'process.stdout.write(JSON.stringify(process.env))';
    const { stdout } = await Command.run(['-n', '1', process.execPath, '-e', print], { environment: odd });
    expect(JSON.parse(stdout)).toMatchObject(odd);
  });

  it('no process and no variable of the start is left beside the ranks', async () => {
    const count =
      'ps --ppid $(ps -o ppid= $(ps -o ppid= $(ps -o ppid= $$))) -o stat=,comm= | grep -c "^Z"; env | grep -c "^NCCLRUN_\\(KEPT\\|CHILD\\|HELD\\)"';
    const { stdout } = await bash(`f() { :; }; export -f f; ncclrun -n 1 sh -c '${count}'`);
    expect(stdout).toBe('0\n0\n');
  });

  it.each([
    ['NODE_OPTIONS', '--no-such-option'],
    ['NODE_ENV', 'production'],
    ['NODE_ICU_DATA', '/nowhere'],
    ['NODE_CHANNEL_FD', '77'],
    ['NODE_EXTRA_CA_CERTS', '/nowhere'],
    ['NODE_DEBUG', 'fs,net'],
  ])('%s does not disturb us and reaches the ranks', async (name, value) => {
    const argv = ['-n', '1', '--tag-output=none', 'printenv', name];
    expect(await Command.run(argv, { environment: { [name]: value } })).toMatchObject({
      status: 0,
      stdout: `${value}\n`,
      stderr: '',
    });
  });

  it('an LD_LIBRARY_PATH with another libstdc++ does not disturb us and reaches the ranks', async () => {
    const libraries = join(directory, 'lib');
    mkdirSync(libraries);
    writeFileSync(join(libraries, 'x.c'), 'int nothing;\n');
    const library = join(libraries, 'libstdc++.so.6');
    execFileSync('cc', ['-shared', '-Wl,-soname,libstdc++.so.6', '-o', library, join(libraries, 'x.c')]);
    const value = `/nowhere:${libraries}:`;
    const argv = ['-n', '1', '--tag-output=none', 'printenv', 'LD_LIBRARY_PATH'];
    expect(await Command.run(argv, { environment: { LD_LIBRARY_PATH: value } })).toMatchObject({
      status: 0,
      stdout: `${value}\n`,
      stderr: '',
    });
  });
});

describe('bytes that are no UTF-8', () => {
  it('arguments, values and the working directory reach the ranks unchanged', async () => {
    const script = [
      `mkdir ${directory}/$'w\\xff' && cd ${directory}/$'w\\xff'`,
      'export GIVEN=$\'g\\xfe\' && ls() { printf \'%s\\n\' "$PWD" "$(pwd -P)" "$GIVEN" "$STATED" "$@"; } && export -f ls',
      "ncclrun -n 1 -x GIVEN -x STATED=$'s\\xfd' bash -c 'ls \"$@\"' x $'a\\xe9' é | od -An -c -v",
    ].join('\n');
    const { stdout } = await bash(script);
    const words = stdout.replaceAll(/\s+/g, ' ');
    expect(words.match(/w 377/g)).toHaveLength(2);
    for (const word of ['g 376 \\n', 's 375 \\n', 'a 351 \\n 303 251 \\n']) expect(words).toContain(word);
  });

  it('a program is found and started by its name in bytes', async () => {
    const script = `cd ${directory}; printf '#!/bin/sh\\necho ran $1\\n' >$'s\\xe9'; chmod +x $'s\\xe9'; ncclrun -n 1 $'./s\\xe9' x`;
    expect(await bash(script)).toMatchObject({ status: 0, stdout: 'ran x\n', stderr: '' });
  });

  it('--wdir takes a directory by its name in bytes', async () => {
    const script = `mkdir ${directory}/$'d\\xff'; ncclrun -n 1 --wdir ${directory}/$'d\\xff' touch here; cat ${directory}/$'d\\xff'/here`;
    expect(await bash(script)).toMatchObject({ status: 0, stderr: '' });
  });
});

describe('a loop of a shell', () => {
  const list = join(directory, 'list');

  it.each([
    ['takes the list', '', 'one\n'],
    ['leaves the list with --stdin none', '--stdin none', 'one\ntwo\nthree\n'],
    ['leaves the list with < /dev/null', '< /dev/null', 'one\ntwo\nthree\n'],
  ])('a job whose ranks read nothing %s', async (_, words, expected) => {
    writeFileSync(list, 'one\ntwo\nthree\n');
    const loop = `while read -r h; do echo "$h"; ncclrun -n 1 ${words.startsWith('<') ? `true ${words}` : `${words} true`}; done`;
    expect((await bash(`${loop} < ${list}`)).stdout).toBe(expected);
    expect((await bash(`cat ${list} | ${loop}`)).stdout).toBe(expected);
    expect(readFileSync(list, 'utf8')).toBe('one\ntwo\nthree\n');
  });

  it('^C ends ncclrun by SIGINT', async () => {
    await using command = Command.start(['-n', '1', 'sh', '-c', 'echo up; exec sleep 60']);
    await command.line('stdout', /up/);
    command.signal('SIGINT');
    expect((await command.outcome).status).toBe(130);
    expect(command.process.signalCode).toBe('SIGINT');
  });
});
