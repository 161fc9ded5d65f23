/** Our own ssh and sshds of this process: logins, keys, jump hosts that are shared, and how each failure is told. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { SshConfiguration } from '../../launcher/remote/ssh-config/configuration.ts';
import { Ssh2 } from '../../launcher/remote/ssh2/ssh2.ts';
import { hostNamed } from '../rig/host-slots.ts';
import { OwnSshd, ownKey, playedSsh, type Exec } from '../rig/own-sshd.ts';
import { until } from '../rig/until.ts';

const root = mkdtempSync(join(tmpdir(), 'ncclrun-hops-'));
afterAll(() => rmSync(root, { recursive: true }));

const [user, other] = [ownKey(), ownKey()];
const sshds: OwnSshd[] = [];
afterEach(() => {
  for (const sshd of sshds.splice(0)) sshd.close();
});

function file(name: string, text: string): string {
  const path = join(root, name);
  writeFileSync(path, text, { mode: 0o600 });
  return path;
}
const usual = `identityfile ${file('key', user.text)}`;
const useless = `identityfile ${file('other', other.text)}`;

/** The hosts j, a jump host, and a and b behind it; `more`: further settings of each host. */
async function played(exec: Exec | null = null, more: Readonly<Record<string, readonly string[]>> = {}) {
  const jump = new OwnSshd(user.blob, { forwards: true });
  const [a, b] = [new OwnSshd(user.blob, { exec }), new OwnSshd(user.blob, { exec })];
  sshds.push(jump, a, b);
  const ports = { j: await jump.listen(), a: await a.listen(), b: await b.listen() };
  const known = [
    [ports.j, jump.key.line],
    [ports.a, a.key.line],
    [ports.b, b.key.line],
  ].map(([port, line]) => `[127.0.0.1]:${port} ${line}\n`);
  const settings = (name: keyof typeof ports) => [
    'hostname 127.0.0.1',
    `port ${ports[name]}`,
    'user me',
    `userknownhostsfile ${file('known', known.join(''))}`,
    'globalknownhostsfile none',
    'stricthostkeychecking yes',
    'identityagent none',
    ...(more[name]?.some((line) => line.startsWith('identityfile')) === true ? [] : [usual]),
    ...(more[name] ?? []),
  ];
  const program = playedSsh(mkdtempSync(join(root, 'ssh-')), {
    j: settings('j'),
    a: settings('a'),
    b: settings('b'),
  });
  const ssh = new Ssh2(new SshConfiguration([program]));
  const steps: string[] = [];
  const start = (name: string, command = 'true') =>
    ssh.start(hostNamed(name), command, {
      step: (step) => void steps.push(step),
      remoteShell: () => undefined,
      staging: () => undefined,
    });
  return { ssh, start, steps, jump, a, b, ports };
}

/** How a command ends, whose link somebody reads. */
async function ending({ start }: Awaited<ReturnType<typeof played>>, name: string) {
  const remote = await start(name);
  remote.link.open({ frame: () => undefined, closed: () => undefined });
  return remote.exit;
}

const succeeds: Exec = (channel) => {
  channel.exit(0);
  channel.end();
};
const jumping = { a: ['proxyjump j'], b: ['proxyjump j'] };

describe('a host that is reached directly', () => {
  test('the command runs as the user that the configuration names, and reports its status', async () => {
    const commands: string[] = [];
    const all = await played((channel, command) => {
      commands.push(command);
      channel.stderr.write('bye\n');
      channel.exit(3);
      channel.end();
    });
    const remote = await all.start('a', 'hostname -f');
    remote.link.open({ frame: () => undefined, closed: () => undefined });
    expect(await remote.exit).toEqual({ status: 3, stderr: 'bye\n' });
    expect(commands).toEqual(['hostname -f']);
    expect(all.a.attempts.at(-1)).toBe('me publickey');
    expect(all.steps).toEqual(['ssh handshake', 'ssh auth', 'agent start']);
    expect(remote.loginMs).toBe(10_000);
    await until('the connection is closed', () => all.a.open === 0);
  });

  test('a key that nobody lets in is named', async () => {
    const all = await played(succeeds, { a: [useless] });
    const { problem, status } = await ending(all, 'a');
    expect([status, problem]).toEqual([null, expect.objectContaining({ cause: 'authentication', transient: false })]);
    expect(problem?.detail).toContain(join(root, 'other'));
  });

  test('each key is offered in its turn', async () => {
    const all = await played(succeeds, { a: [useless, usual] });
    expect(await ending(all, 'a')).toEqual({ status: 0, stderr: '' });
  });

  test('a host with another key than the known one is refused', async () => {
    const all = await played(succeeds);
    file('known', `[127.0.0.1]:${all.ports.a} ${other.line}\n`);
    const { problem } = await ending(all, 'a');
    expect(problem).toMatchObject({ cause: 'host-key', transient: false });
    expect(all.a.attempts).toEqual([]);
  });

  test('a host that starts nothing says so', async () => {
    const all = await played(null);
    const { problem } = await ending(all, 'a');
    expect(problem).toMatchObject({
      cause: 'shell',
      detail: expect.stringMatching(/^127\.0\.0\.1 lets us in, but starts nothing: /u),
      remedy: expect.stringMatching(/^try: ssh -p \d+ me@a true$/u),
    });
  });

  test('a connection that breaks leaves the command without a status', async () => {
    const all = await played(() => all.a.close());
    expect((await ending(all, 'a')).status).toBeNull();
  });

  test('a command that is killed has no status, and its connection is closed', async () => {
    let running = false;
    const all = await played(() => (running = true));
    const remote = await all.start('a');
    remote.link.open({ frame: () => undefined, closed: () => undefined });
    await until('it runs', () => running);
    remote.kill();
    expect((await remote.exit).status).toBeNull();
    await until('the connection is closed', () => all.a.open === 0);
  });

  test('nobody listens there', async () => {
    const all = await played(succeeds);
    all.a.close();
    const exit = await ending(all, 'a');
    expect(exit.problem).toMatchObject({ cause: 'refused' });
    expect(all.ssh.isTransient(exit)).toBe(exit.problem?.transient === true);
  });
});

describe('a jump host', () => {
  test('one connection to it serves all hosts behind it, and ends with the last', async () => {
    const running = new Set<() => void>();
    const all = await played((channel) => void running.add(() => succeeds(channel, '')), jumping);
    const exits = [ending(all, 'a'), ending(all, 'b')];
    await until('both run', () => running.size === 2);
    expect([all.jump, all.a, all.b].map(({ connections }) => connections.length)).toEqual([1, 1, 1]);
    const [first, second] = [...running];
    first?.();
    await Promise.race(exits);
    expect(all.jump.open).toBe(1);
    second?.();
    expect(await Promise.all(exits)).toEqual([
      { status: 0, stderr: '' },
      { status: 0, stderr: '' },
    ]);
    await until('the connection is closed', () => all.jump.open === 0);
    const third = ending(all, 'a');
    await until('it runs', () => running.size === 3);
    expect(all.jump.connections).toHaveLength(2);
    for (const end of running) end();
    expect((await third).status).toBe(0);
  });

  test('a host that it cannot reach is its problem', async () => {
    const all = await played(succeeds, { a: ['proxyjump b'] });
    const { problem } = await ending(all, 'a');
    expect(problem).toMatchObject({
      detail: expect.stringContaining(`b, on the way there, cannot connect to 127.0.0.1 port ${all.ports.a}: `),
      remedy: `try: ssh b ssh-keyscan -p ${all.ports.a} 127.0.0.1`,
    });
  });

  test('one that refuses connections is named, with what to correct', async () => {
    const all = await played(succeeds, { a: ['proxyjump j:1'] });
    expect((await ending(all, 'a')).problem).toMatchObject({
      cause: 'refused',
      detail: 'j, on the way there: connect to 127.0.0.1 port 1: connection refused',
      remedy: expect.stringContaining('correct ProxyJump'),
    });
  });

  test('its own failure is the failure of those behind it', async () => {
    const all = await played(succeeds, { ...jumping, j: [useless] });
    const exits = await Promise.all([ending(all, 'a'), ending(all, 'b')]);
    expect(exits.map(({ problem }) => problem?.cause)).toEqual(['authentication', 'authentication']);
    for (const { problem } of exits) expect(problem?.detail).toMatch(/^j, on the way there: .*Permission denied/u);
    expect(all.a.connections).toEqual([]);
  });
});
