/** --stdin: which ranks read ours, how fast, and what becomes of the others. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import { Steering } from '../rig/steering.ts';

const cat = ['sh', '-c', 'echo "$RANK: $(tr "\\n" " ")"'];

/** Runs with `text` as stdin; resolves with the lines of stdout, sorted. */
async function fed(argv: readonly string[], text: string): Promise<readonly string[]> {
  await using command = Command.start(['--tag-output=none', ...argv], { stdin: 'pipe' });
  command.process.stdin?.end(text);
  const { status, stdout } = await command.outcome;
  expect(status).toBe(0);
  return stdout.slice(0, -1).split('\n').toSorted();
}

describe('ranks that read stdin', () => {
  it.each([
    [[], ['0: a b ', '1: ', '2: ']],
    [
      ['--stdin', 'all'],
      ['0: a b ', '1: a b ', '2: a b '],
    ],
    [
      ['--stdin', '1-2'],
      ['0: ', '1: a b ', '2: a b '],
    ],
    [
      ['--stdin', 'none'],
      ['0: ', '1: ', '2: '],
    ],
  ])('the options %j give stdin to the expected ranks', async (options, lines) => {
    expect(await fed([...options, '-n', '3', ...cat], 'a\nb\n')).toEqual(lines);
  });

  it.each([
    ['3', 'there is none'],
    ['0-x', 'all, none, or ranks'],
  ])('the launcher rejects --stdin %s and starts nothing', async (list, words) => {
    const { status, stdout, stderr } = await Command.run(['-n', '3', '--stdin', list, 'echo', 'started']);
    expect({ status, stdout }).toEqual({ status: 2, stdout: '' });
    expect(stderr).toContain(words);
  });
});

describe('large input', () => {
  it('every reading rank receives all input, and a rank that stops reading blocks none', async () => {
    const bytes = randomBytes(8 * 1024 * 1024, seededRandom(1));
    const script = 'case $RANK in 0) head -c 1 >/dev/null;; 1) exec <&-; sleep 0.1;; *) md5sum;; esac';
    await using command = Command.start(['--tag-output=none', '-n', '4', '--stdin', 'all', 'sh', '-c', script], {
      stdin: 'pipe',
    });
    command.process.stdin?.end(bytes);
    const sum = createHash('md5').update(bytes).digest('hex');
    expect(await command.outcome).toMatchObject({ status: 0, stdout: `${sum}  -\n${sum}  -\n` });
  });

  it('a rank that does not read blocks the writer within bounded memory', async () => {
    await using steering = await Steering.open();
    const argv = ['-n', '2', '--stdin', 'all', ...steering.options, steering.program];
    await using command = Command.start(argv, { stdin: 'pipe' });
    const ranks = await steering.ranks(2);
    const { stdin } = command.process;
    const size = 2 * 1024 * 1024;
    // What neither rank reads stays with us, but for the pipes and one window for each.
    stdin?.write(Buffer.alloc(size, 'x\n'));
    expect(stdin?.writableLength).toBeGreaterThan(size / 2);
    const read = Promise.all(ranks.map((rank) => rank.tell({ do: 'readStdin' })));
    if (stdin !== null && stdin.writableNeedDrain) await once(stdin, 'drain');
    stdin?.end();
    expect((await read).map((text) => String(text).length)).toEqual([size, size]);
    await Promise.all(ranks.map((rank) => rank.exit(0)));
    expect((await command.outcome).status).toBe(0);
  });
});

describe('redirected input', () => {
  it.each(['<&-', '</dev/null'])('ranks read end of file with %s', async (redirection) => {
    const script = `bin/ncclrun -n 1 --stdin all sh -c 'cat; echo done' ${redirection}`;
    expect(await Command.run(['-c', script], { program: 'sh' })).toMatchObject({ status: 0, stdout: 'done\n' });
  });

  it('ranks read a file to its end', async () => {
    const script =
      'bin/ncclrun -n 2 --tag-output=none --stdin all md5sum < package-lock.json | uniq | wc -l; md5sum < package-lock.json | wc -l';
    expect(await Command.run(['-c', script], { program: 'sh' })).toMatchObject({ status: 0, stdout: '1\n1\n' });
  });
});
