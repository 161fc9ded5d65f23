/** The command as it is started, with words of strangers: what it prints has nothing that a terminal would obey, and no line of theirs is like ours. */
import { once } from 'node:events';
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { encodeFrame, encodeJson, makeFrame } from '../../control/messages/codec.ts';
import { FrameKind } from '../../control/messages/frame.ts';
import { Command } from '../rig/command.ts';
import { HOSTILE, obeyed } from '../rig/hostile.ts';
import { sample } from '../rig/whole.ts';

/** Where no zero can be: in arguments, names of files and variables. */
const WORD = HOSTILE.replaceAll('\u0000', '');
const FILE_NAME = WORD.replaceAll('/', '');
/** A file name, a host's word. */
const ONE_LINE = WORD.replaceAll(/[\r\n]/g, '');
const ESCAPED = String.raw`h\x1b]0;pwned\x07`;

let directory = '';
beforeAll(async () => (directory = await mkdtemp(join(tmpdir(), 'ncclrun-test-'))));
afterAll(() => rm(directory, { recursive: true }));

async function program(name: string, text: string): Promise<string> {
  const path = resolve(directory, name);
  await writeFile(path, text);
  await chmod(path, 0o755);
  return path;
}

interface Wanted {
  readonly status: number;
  /** Left out: the words of the stranger. */
  readonly shown?: string;
  readonly environment?: NodeJS.ProcessEnv;
}

async function isHarmless(
  argv: readonly string[],
  { status, shown = ESCAPED, environment = {} }: Wanted,
): Promise<void> {
  const seen = await Command.run(argv, { directory, environment });
  expect(obeyed(seen.stdout + seen.stderr), seen.stderr).toEqual([]);
  expect(seen.status, seen.stderr).toBe(status);
  expect(seen.stdout + seen.stderr).toContain(shown);
  for (const line of seen.stderr.trimEnd().split('\n')) {
    if (line !== '') expect(line).toMatch(/^(ncclrun: (?!all fine)| {4}| {2}next: )/);
  }
}

describe('a remote shell', () => {
  it('the launcher quotes hostile stderr line by line', async () => {
    const says = join(directory, 'says');
    await writeFile(says, Buffer.concat([Buffer.from(`${HOSTILE}\n`), Uint8Array.of(0xff, 0x9b, 0x0a)]));
    const shell = await program('shell', `#!/bin/sh\ncat ${says} >&2\nexit 255\n`);
    await isHarmless(['--rsh', shell, '-H', 'far:1', '/bin/true'], { status: 125, shown: `    | ${ESCAPED}` });
  });

  it('the launcher truncates megabytes of hostile stderr', async () => {
    const shell = await program('endless', `#!/bin/sh\nhead -c 5000000 /dev/zero | tr '\\0' '\\033' >&2\nexit 255\n`);
    const { stderr } = await Command.run(['--rsh', shell, '-H', 'far:1', '/bin/true']);
    expect(obeyed(stderr)).toEqual([]);
    expect(stderr.length).toBeLessThan(20_000);
  });

  it('the launcher prints the hostile refusal of an agent in one line', async () => {
    const report = { type: 'refusal', message: HOSTILE, remedy: HOSTILE };
    await writeFile(
      join(directory, 'refusal'),
      encodeFrame(makeFrame(FrameKind.failure, { payload: encodeJson(report) })),
    );
    const shell = await program('agent', `#!/bin/sh\ncat ${join(directory, 'refusal')}\n`);
    await isHarmless(['--rsh', shell, '--stage', 'never', '-H', 'far:1', '/bin/true'], { status: 125 });
  });
});

/** An unencrypted SSH_MSG_DISCONNECT (RFC 4253, 11.1) with that description. */
function disconnect(description: string): Buffer {
  const text = Buffer.from(description);
  const payload = Buffer.concat([Uint8Array.of(1), number(2), number(text.length), text, number(0)]);
  const padding = 4 + ((8 - ((5 + payload.length + 4) % 8)) % 8);
  return Buffer.concat([
    number(1 + payload.length + padding),
    Uint8Array.of(padding),
    payload,
    new Uint8Array(padding),
  ]);
}

function number(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

describe.each([
  ['in its version string', `SSH-2.0-${WORD}\r\n`],
  ['before its version string', `${WORD}\r\nSSH-2.0-x\r\n`],
  ['instead of a version string', `${WORD}\r\n`],
  ['when it disconnects', Buffer.concat([Buffer.from('SSH-2.0-x\r\n'), disconnect(WORD)])],
])('an ssh server that sends hostile text %s', (_when, greeting) => {
  let server: Server | null = null;
  let environment = {};
  beforeAll(async () => {
    server = createServer((socket) => {
      socket.on('error', () => undefined);
      socket.resume();
      socket.end(greeting);
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const port = typeof address === 'object' && address !== null ? address.port : 0;
    const tools = await mkdtemp(join(directory, 'ssh-'));
    const settings = join(tools, 'config');
    await writeFile(settings, `Host far\n  HostName 127.0.0.1\n  Port ${port}\n`);
    await program(join(tools, 'ssh'), `#!/bin/sh\nPATH=$ORIGINAL_PATH exec ssh -F ${settings} "$@"\n`);
    const { PATH: path = '' } = process.env;
    environment = { PATH: `${tools}:${path}`, ORIGINAL_PATH: path };
  });
  afterAll(() => server?.close());

  it.each(sample(['ssh2', 'openssh'], 2))('the launcher quotes it harmlessly with --rsh %s', (way) =>
    isHarmless(['--rsh', way, '-H', 'far:1', '/bin/true'], { status: 125, shown: 'cannot reach far', environment }),
  );
});

describe('hostile text in arguments and files', () => {
  it('the launcher escapes hostile text of a hostfile', async () => {
    await writeFile(join(directory, 'hosts'), `${ONE_LINE}\n`);
    await isHarmless(['--hostfile', 'hosts', '/bin/true'], { status: 2 });
  });

  it.each(
    sample(
      [
        ['the name of a missing hostfile', ['--hostfile', `x${FILE_NAME}`, '/bin/true'], 2],
        ['the name of a program', [`./${FILE_NAME}`], 127],
        ['the name of a directory', ['--wdir', `/${FILE_NAME}`, '/bin/true'], 125],
        ['a host', ['-H', WORD, '/bin/true'], 2],
        ['an option', [`--${WORD}`, '/bin/true'], 2],
        ['an option’s value', ['-n', WORD, '/bin/true'], 2],
        ['the name of a topology', ['topo', '--from', FILE_NAME], 2],
        ['the name of a plan', ['plan', '--diff', FILE_NAME, FILE_NAME], 2],
        ['an option of plan', ['plan', '--topo', FILE_NAME], 2],
        ['the command of --rsh', ['--rsh', `/${FILE_NAME}`, '-H', 'far:1', '/bin/true'], 125],
        ['a dry run', ['--dry-run', '-n', '1', '/bin/true', WORD], 0],
        ['a dry run as JSON', ['--dry-run', '--json', '-n', '1', '/bin/true', `\u009B${WORD}`], 0],
        ['verbose output', ['--verbose', '-n', '1', '/bin/true', WORD], 0],
        ['a result', ['--json', '-n', '1', `./${FILE_NAME}`], 127],
      ] as const,
      2,
    ),
  )('the launcher escapes hostile text in %s', (name, argv, status) =>
    isHarmless(argv, {
      status,
      ...(name.includes('JSON') || name === 'a result' ? { shown: String.raw`\u009b` } : {}),
    }),
  );

  it('ncclrun config escapes hostile text of a setting', async () => {
    await isHarmless(['config', '--explain'], { status: 0, environment: { NCCLRUN_HOSTFILE: WORD } });
    await isHarmless(['config'], { status: 0, environment: { NCCLRUN_HOSTFILE: WORD } });
  });

  it.each([
    ['a name', '<system version="1"><cpu numaid="0" arch="x&#x9b;2J&#10;ncclrun: all fine"/></system>', 2],
    ['an address', '<system version="1"><cpu numaid="0"><pci busid="\u202E" class="0x030200"/></cpu></system>', 2],
    [
      'a comment',
      `<!--${ONE_LINE.replaceAll(/[^\x20-\x7e\u0080-\uffff]/g, '')}--><system version="1"><cpu numaid="0" arch="x86_64" vendor="AuthenticAMD" familyid="175" modelid="1"/></system>`,
      0,
    ],
  ])('ncclrun topo escapes hostile text in %s of a topology', async (_where, text, status) => {
    await writeFile(join(directory, 'topology.xml'), text);
    for (const format of ['text', 'json', 'xml', 'svg'])
      await isHarmless(['topo', '--from', 'topology.xml', '--format', format], { status, shown: '' });
  });
});
