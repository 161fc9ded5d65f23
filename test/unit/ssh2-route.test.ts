/** By which jump hosts our own ssh reaches a host, what keeps it from doing so, and how it judges keys. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { KnownHostsFiles } from '../../launcher/remote/known-hosts/files.ts';
import { fingerprint } from '../../launcher/remote/known-hosts/judge.ts';
import type { Answer, Destination } from '../../launcher/remote/ssh-config/configuration.ts';
import { recordsOf, refuseKey } from '../../launcher/remote/ssh2/host-key.ts';
import { SshRoutes } from '../../launcher/remote/ssh2/route.ts';
import { hopSettings } from '../../launcher/remote/ssh2/settings.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-route-'));
afterAll(() => rmSync(directory, { recursive: true }));

type Configured = Readonly<Record<string, readonly string[]>>;

const answerOf = (settings: Configured, error: string | null = null): Answer => {
  const usual = {
    hostname: ['x'],
    identityfile: [],
    userknownhostsfile: [join(directory, 'none')],
    globalknownhostsfile: ['none'],
  };
  return { settings: new Map(Object.entries({ ...usual, ...settings })), files: [], error };
};

/** `hosts`: what ssh would say of each. */
function routes(hosts: Readonly<Record<string, Answer>>, keys: { types?: readonly string[]; offers?: number } = {}) {
  const configuration = {
    of: async ({ name }: Destination) => hosts[name] ?? answerOf({}),
    mentions: async (word: RegExp) => word.test('Ciphers x'),
  };
  const identities = {
    agentKeys: async () => (keys.types ?? []).map((type) => ({ type, key: Buffer.alloc(0), comment: '' })),
    offers: async () => ({
      offers: Array.from({ length: keys.offers ?? 0 }, (_, index) => ({
        name: `${index}`,
        method: () => expect.unreachable(),
      })),
      leftOut: [],
    }),
  };
  return new SshRoutes(configuration, identities, new KnownHostsFiles());
}

const to = (name: string): Destination => ({ name, user: null, port: null });

async function obstacleOf(settings: Configured, error: string | null = null, keys = {}) {
  const { obstacle } = await routes({ h: answerOf(settings, error) }, keys).to(to('h'));
  return obstacle === null ? null : `${obstacle.hard ? 'hard' : 'soft'}: ${obstacle.what}`;
}

const names = async (hosts: Readonly<Record<string, Answer>>) => {
  const { hops, obstacle } = await routes(hosts).to(to('h'));
  return [hops.map(({ name }) => name).join(' '), obstacle?.what ?? null];
};

describe('the route', () => {
  test('jump hosts come in their order, and those of the first one before it', async () => {
    expect(await names({})).toEqual(['h', null]);
    expect(await names({ h: answerOf({ proxyjump: ['a'] }) })).toEqual(['a h', null]);
    expect(await names({ h: answerOf({ proxyjump: ['a,b,c'] }), c: answerOf({ proxyjump: ['x'] }) })).toEqual([
      'a b c h',
      null,
    ]);
    expect(await names({ h: answerOf({ proxyjump: ['a,b'] }), a: answerOf({ proxyjump: ['z'] }) })).toEqual([
      'z a b h',
      null,
    ]);
  });

  test('eight jump hosts are possible, and a circle is not', async () => {
    const chain = (count: number) =>
      Object.fromEntries([
        ['h', answerOf({ proxyjump: ['j1'] })],
        ...Array.from({ length: count - 1 }, (_, index) => [
          `j${index + 1}`,
          answerOf({ proxyjump: [`j${index + 2}`] }),
        ]),
      ]);
    expect(await names(chain(8))).toEqual(['j8 j7 j6 j5 j4 j3 j2 j1 h', null]);
    expect((await names(chain(9)))[1]).toBe('more than 8 jump hosts lead to h');
    const circle = await routes({ h: answerOf({ proxyjump: ['a'] }), a: answerOf({ proxyjump: ['h'] }) }).to(to('h'));
    expect([circle.hops.length, circle.obstacle]).toEqual([
      3,
      {
        what: 'the jump hosts of h lead in a circle: h, a, h',
        hard: true,
        remedy: expect.stringContaining('ProxyJump none'),
      },
    ]);
    const own = await routes({ h: answerOf({ proxyjump: ['h'] }) }).to(to('h'));
    expect(own.obstacle?.what).toBe('the jump hosts of h lead in a circle: h, h');
  });

  test('one jump host may stand on the way twice', async () => {
    expect(await names({ h: answerOf({ proxyjump: ['a,b,a'] }) })).toEqual(['a b a h', null]);
  });

  test('the first obstacle on the way counts, and the user’s orders of algorithms are known', async () => {
    const { obstacle, orders } = await routes({
      h: answerOf({ proxyjump: ['a'] }),
      a: answerOf({ proxycommand: ['nc'] }),
    }).to(to('h'));
    expect([obstacle, orders]).toEqual([
      { what: 'ProxyCommand is set for a', hard: true },
      { kex: false, ciphers: true, macs: false },
    ]);
  });

  const certified = join(directory, 'id');
  const hardware = join(directory, 'id_sk');
  for (const file of [`${certified}-cert.pub`, hardware]) writeFileSync(file, '');
  const authority = join(directory, 'authorities');
  writeFileSync(authority, `@cert-authority * ssh-ed25519 ${keyOf('ssh-ed25519', 'a').toString('base64')}\n`);

  test.each<[string, Configured, object, string | null]>([
    ['nothing', {}, {}, null],
    [
      'settings that are off',
      { proxycommand: ['none'], hostbasedauthentication: ['no'], verifyhostkeydns: ['false'], controlpath: [''] },
      {},
      null,
    ],
    ['a certificate', { certificatefile: ['/c'] }, {}, 'soft: there is a certificate, /c'],
    [
      'a certificate beside a key',
      { identityfile: [certified] },
      {},
      `soft: there is a certificate, ${certified}-cert.pub`,
    ],
    [
      'a hardware key',
      { identityfile: [hardware, join(directory, 'other_sk')] },
      {},
      `soft: there is a security key, ${hardware}`,
    ],
    ['a hardware key that is not there', { identityfile: [join(directory, 'other_sk')] }, {}, null],
    [
      'a certificate in the agent',
      {},
      { types: ['ssh-ed25519', 'ssh-ed25519-cert-v01@openssh.com'] },
      'soft: the agent holds a ssh-ed25519-cert-v01@openssh.com',
    ],
    ['no public keys', { pubkeyauthentication: ['false'] }, {}, 'soft: PubkeyAuthentication is off for h'],
    [
      'no public keys, as people write it',
      { pubkeyauthentication: ['no'] },
      {},
      'soft: PubkeyAuthentication is off for h',
    ],
    [
      'other methods',
      { preferredauthentications: ['password,hostbased'] },
      {},
      'soft: PreferredAuthentications of h leaves out public keys',
    ],
    ['several methods', { preferredauthentications: ['password,publickey'] }, {}, null],
    [
      'GSSAPI alone',
      { gssapiauthentication: ['yes'] },
      {},
      'soft: only GSSAPI is left for h: there is no key that ssh2 can use',
    ],
    ['GSSAPI beside a key', { gssapiauthentication: ['yes'] }, { offers: 1 }, null],
    ['no GSSAPI', { gssapiauthentication: ['no'] }, {}, null],
    [
      'algorithms beyond us',
      { kexalgorithms: ['sntrup761x25519-sha512'] },
      {},
      "hard: none of the KexAlgorithms of h is one of ssh2's",
    ],
    [
      'a certificate authority',
      { userknownhostsfile: [authority] },
      {},
      `soft: the key of h is known by a certificate authority (${authority}:1)`,
    ],
  ])('%s is an obstacle: %j', async (_what, settings, keys, expected) => {
    expect(await obstacleOf(settings, null, keys)).toBe(expected);
  });

  test('an answer of ssh that is an error is one', async () => {
    expect(await obstacleOf({}, 'Bad owner')).toBe('hard: ssh -G fails for h: Bad owner');
  });
});

/** A public key of this type that holds this text. */
function keyOf(type: string, text: string): Buffer {
  return Buffer.concat(
    [type, text].flatMap((part) => {
      const length = Buffer.alloc(4);
      length.writeUInt32BE(part.length);
      return [length, Buffer.from(part)];
    }),
  );
}

const known = (key: Buffer, type = 'ssh-ed25519', marker = '') => `${marker}x ${type} ${key.toString('base64')}`;

describe("a host's key", () => {
  const [one, two, rsa] = [keyOf('ssh-ed25519', '1'), keyOf('ssh-ed25519', '2'), keyOf('ssh-rsa', '3')];
  let files = 0;
  const judged = (lines: readonly string[], key: Buffer, settings: Configured = {}, port: number | null = null) => {
    const file = join(directory, `known${files++}`);
    writeFileSync(file, lines.map((line) => `${line}\n`).join(''));
    const hop = hopSettings({ name: 'h', user: 'ann', port }, answerOf({ userknownhostsfile: [file], ...settings }));
    const refused = refuseKey(hop, recordsOf(hop, new KnownHostsFiles()), key);
    return {
      text: refused === null ? null : `${refused.problem.detail}; ${refused.problem.remedy}`.replaceAll(file, 'FILE'),
      after: readFileSync(file, 'utf8'),
    };
  };
  const byHand =
    "compare the fingerprint with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub there), then let ssh add the key: ssh ";

  test('a known key is taken, and a changed one is refused unless checks are off', () => {
    expect(judged([known(one)], one).text).toBeNull();
    expect(judged([known(one)], two).text).toBe(
      `x, port 22: the key of x has changed: it shows ED25519 ${fingerprint(two)}, known is ED25519 ${fingerprint(one)} (FILE:1); if the host was installed anew, forget the old key:\nssh-keygen -R x -f FILE\nif it was not, somebody else may answer in its place`,
    );
    expect(judged([known(one)], two, { stricthostkeychecking: ['off'] }).text).toBeNull();
    expect(judged([known(one)], two, { stricthostkeychecking: ['accept-new'] }).text).toContain('has changed');
    expect(judged([known(one, 'ssh-ed25519', '@revoked ')], one, { stricthostkeychecking: ['off'] }).text).toMatch(
      /^x, port 22: the key ED25519 \S+ of x is revoked: FILE:1; the host must get another key/u,
    );
  });

  test('an unknown key is refused with what is known, or added', () => {
    const refused = (lines: readonly string[], port: number | null = null) => judged(lines, one, {}, port).text;
    expect(refused([])).toBe(
      `x, port 22: no key of x is known that is ssh-ed25519; it shows ED25519 ${fingerprint(one)}; ${byHand}ann@h true`,
    );
    expect(refused([], 2222)).toBe(
      `x, port 2222: no key of [x]:2222 is known that is ssh-ed25519; it shows ED25519 ${fingerprint(one)}; ${byHand}-p 2222 ann@h true`,
    );
    expect(refused([known(rsa, 'ssh-rsa')])).toContain(`; of other types RSA ${fingerprint(rsa)} (FILE:1); `);
    expect(refused([known(two, 'ssh-ed25519', '@cert-authority ')])).toContain(
      '; its certificates would be trusted (FILE:1), which ssh2 cannot check: --rsh openssh can; ',
    );
    const added = judged([], one, { stricthostkeychecking: ['accept-new'] });
    expect([added.text, added.after]).toEqual([null, `${known(one)}\n`]);
    expect(judged([], one, { stricthostkeychecking: ['accept-new'], hashknownhosts: ['yes'] }).after).toMatch(
      /^\|1\|\S+\|\S+ ssh-ed25519 /u,
    );
  });
});
