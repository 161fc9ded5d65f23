import { describe, expect, test } from 'vitest';
import { Limiter } from '../../launcher/remote/shell/limiter.ts';
import { quote, sshTrial } from '../../launcher/remote/shell/shell.ts';
import { explainLogin, explainSsh, isTransientSsh } from '../../launcher/remote/ssh-error.ts';
import { hostNamed } from '../rig/host-slots.ts';

const host = hostNamed('node7', { user: 'ann' });
const exit = { status: 255 };

describe('errors of ssh', () => {
  test.each([
    ['ssh: Could not resolve hostname node7: Name or service not known\r\n', 'unknown-host', /hostfile/],
    [
      'No ED25519 host key is known for node7 and you have requested strict checking.\nHost key verification failed.',
      'host-key',
      /ssh ann@node7/,
    ],
    [
      '@@@@@@@@@@@\n@ WARNING: REMOTE HOST IDENTIFICATION HAS CHANGED! @\n@@@@@@@@@@@\nHost key verification failed.',
      'host-key',
      /ssh-keygen -R/,
    ],
    ['ann@node7: Permission denied (publickey).', 'authentication', /BatchMode=yes ann@node7/],
    ['ssh: connect to host node7 port 22: No route to host', 'no-route', /down/],
    ['ssh: connect to host node7 port 22: Connection refused', 'refused', /sshd/],
    ['ssh: connect to host node7 port 22: Connection timed out', 'timeout', /firewall/],
    ['Connection timed out during banner exchange', 'timeout', /firewall/],
    ['Timeout, server node7 not responding.', 'timeout', /firewall/],
    ['channel 0: open failed: connect failed: Connection refused', 'refused', /sshd/],
    ['license server: connection timed out', 'other', /ssh -v ann@node7/],
    ['at listOnTimeout (node:internal/timers:581:17)\n  at process.processTimers', 'other', /ssh -v/],
    ['bash: /etc/site: Permission denied', 'other', /ssh -v/],
    ['curl: (7) Failed to connect: Connection refused', 'other', /ssh -v/],
    ['Bad owner or permissions on /home/ann/.ssh/config', 'other', /chmod go-w \/home\/ann\/.ssh\/config/],
    [
      '/h/config: line 2: Bad configuration option: prot\n/h/config: terminating, 1 bad configuration options',
      'other',
      /mend \/h\/config/,
    ],
    [
      'Unable to negotiate with 10.0.0.7 port 22: no matching host key type found. Their offer: ssh-rsa,ssh-dss',
      'other',
      /Host node7, HostKeyAlgorithms \+ssh-rsa/,
    ],
    [
      'Unable to negotiate with 10.0.0.7 port 22: no matching key exchange method found. Their offer: diffie-hellman-group1-sha1',
      'other',
      /KexAlgorithms \+diffie-hellman-group1-sha1/,
    ],
    [
      'Unable to negotiate with 10.0.0.7 port 22: no matching cipher found. Their offer: aes128-cbc',
      'other',
      /Ciphers \+aes128-cbc/,
    ],
    [
      'Unable to negotiate with 10.0.0.7 port 22: no matching MAC found. Their offer: hmac-md5',
      'other',
      /MACs \+hmac-md5/,
    ],
    [
      '/bin/sh: 1: exec: cloudflared: not found\nkex_exchange_identification: Connection closed by remote host',
      'other',
      /ProxyCommand/,
    ],
    [
      'channel 0: open failed: administratively prohibited: open failed\nstdio forwarding failed\nkex_exchange_identification: Connection closed by remote host',
      'other',
      /AllowTcpForwarding/,
    ],
    ['ann@node7: Permission denied (password).', 'authentication', /takes no key.*password.*ControlMaster/],
    [
      'Received disconnect from 10.0.0.7 port 22:2: Too many authentication failures',
      'authentication',
      /Host node7, IdentityFile KEY, IdentitiesOnly yes/,
    ],
    ['root@node7: Permission denied (publickey).', 'authentication', /PermitRootLogin/],
    ['', 'shell', /ssh -v/],
  ])('the stderr %j has the cause %s', (stderr, cause, remedy) => {
    const failure = explainSsh(host, { ...exit, stderr: stderr }, 'ssh -v ann@node7 true');
    expect(failure).toMatchObject({ type: 'host-unreachable', host: 'node7', cause });
    expect(failure.remedy).toMatch(remedy);
    expect(failure.detail).not.toMatch(/^@+$/m);
    expect(isTransientSsh(stderr)).toBe(false);
  });

  test('the remedy for a name that no host has names a file of that name', () => {
    const stderr = 'ssh: Could not resolve hostname package.json: Name or service not known';
    const remedy = (name: string) => explainSsh(hostNamed(name), { ...exit, stderr }, 'ssh -v x true').remedy;
    expect(remedy('package.json')).toBe(
      'package.json is a file here: name it with --hostfile package.json, or check the name',
    );
    expect([remedy('test'), remedy('none')].map((text) => text?.includes('--hostfile'))).toEqual([false, false]);
  });

  test('remedies have the user and the port', () => {
    const at = hostNamed('node7', { user: 'ann', port: 2222 });
    const remedyFor = (stderr: string) => explainSsh(at, { ...exit, stderr }, sshTrial(['ssh'], at, true)).remedy;
    expect(remedyFor('ann@node7: Permission denied (publickey).')).toBe(
      'this must work without a password: ssh -o BatchMode=yes -p 2222 ann@node7 true (ssh-copy-id -p 2222 ann@node7, or ssh-add)',
    );
    const changed = remedyFor('Host key verification failed.');
    expect(changed).toContain('ssh -p 2222 ann@node7;');
    expect(changed).toContain("ssh-keygen -R '[node7]:2222'");
    expect(remedyFor('odd')).toBe('try: ssh -v -p 2222 ann@node7 true');
    expect(explainLogin(at, { status: 1, stderr: '' }, sshTrial(['ssh'], at, false))).toMatchObject({
      cause: 'shell',
      detail: 'the login ended with status 1 before it ran our command',
      remedy: expect.stringContaining('ssh -p 2222 ann@node7 true;'),
    });
  });

  test('remedies quote a user of a Windows domain', () => {
    const ofDomain = hostNamed('node7', { user: String.raw`LAB\ann` });
    expect(sshTrial(['ssh'], ofDomain, false)).toBe(String.raw`ssh 'LAB\ann@node7' true`);
  });

  test('a restricted login shell is named', () => {
    const stderr = 'rbash: line 1: exec: restricted';
    expect(explainLogin(host, { status: 1, stderr }, 'ssh node7 true').remedy).toMatch(/restricted.*chsh/u);
  });

  test('a connection that a busy sshd drops may be retried', () => {
    for (const stderr of [
      'kex_exchange_identification: Connection closed by remote host\r\nConnection closed by 10.0.0.7 port 22',
      'kex_exchange_identification: read: Connection reset by peer',
      'Connection closed by 10.0.0.7 port 22',
    ]) {
      expect(isTransientSsh(stderr)).toBe(true);
    }
  });
});

test('quote() protects words from the shell', () => {
  expect(quote('/opt/a b/$x')).toBe(`'/opt/a b/$x'`);
  expect(quote(`it's`)).toBe(String.raw`'it'\''s'`);
});

test('a limiter admits a fixed number, and the next one when one leaves', async () => {
  const limiter = new Limiter(2);
  const entered: number[] = [];
  const enter = async (number: number) => {
    const leave = await limiter.enter();
    entered.push(number);
    return leave;
  };
  const [first, second, third] = [enter(1), enter(2), enter(3)];
  const leave = await first;
  await second;
  expect(entered).toEqual([1, 2]);
  leave();
  leave();
  const leaveThird = await third;
  expect(entered).toEqual([1, 2, 3]);
  const fourth = enter(4);
  leaveThird();
  await fourth;
  expect(entered).toEqual([1, 2, 3, 4]);
});
