import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SshConfiguration } from '../../launcher/remote/ssh-config/configuration.ts';
import { OpenSshOptions } from '../../launcher/remote/ssh-config/openssh-options.ts';
import { findProgram } from '../rig/capability.ts';

/** The system's ssh answers; the dialler is any file that exists. */
describe.skipIf(findProgram('ssh') === null)("options added to the user's ssh configuration", () => {
  let directory = '';
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'ncclrun-settings-'));
  });
  afterAll(() => rmSync(directory, { recursive: true }));

  async function optionsOf(config: string, hosts: readonly string[], dialPath = '/bin/true') {
    const file = join(directory, 'config');
    writeFileSync(file, config);
    const settings = new OpenSshOptions(new SshConfiguration(['ssh', '-F', file]), dialPath);
    const options = await Promise.all(hosts.map((host) => settings.options(['--', host])));
    return options.map((one) => one.map(([name]) => name));
  }
  const all = ['KexAlgorithms', 'ProxyCommand', 'ProxyUseFdpass'];

  test('all options are added if the configuration sets none of them', async () => {
    expect(await optionsOf('Host *\n  User ann\n', ['a', 'b'])).toEqual([all, all]);
  });

  test("the user's KexAlgorithms stay for the hosts that they apply to", async () => {
    const config = 'Host b\n  KexAlgorithms ecdh-sha2-nistp256\n';
    expect(await optionsOf(config, ['a', 'b'])).toEqual([all, ['ProxyCommand', 'ProxyUseFdpass']]);
  });

  test('no ProxyCommand is added for hosts with a proxy or bind address', async () => {
    const config = 'Host b\n  ProxyJump a\nHost c\n  ProxyCommand nc %h %p\nHost d\n  BindAddress 127.0.0.1\n';
    expect(await optionsOf(config, ['a', 'b', 'c', 'd'])).toEqual([
      all,
      ['KexAlgorithms'],
      ['KexAlgorithms'],
      ['KexAlgorithms'],
    ]);
  });

  test.each([
    ['AddressFamily any', all],
    ['AddressFamily inet', ['KexAlgorithms']],
    ['AddressFamily inet6', ['KexAlgorithms']],
    ['ProxyJump none', all],
    ['ProxyCommand none', all],
    ['ProxyUseFdpass no', all],
    ['BindAddress 127.0.0.1', ['KexAlgorithms']],
    ['BindInterface lo', ['KexAlgorithms']],
  ])('a ProxyCommand is added to a configuration of "%s" if it leaves the connection to us', async (line, options) => {
    expect(await optionsOf(`Host b\n  ${line}\n`, ['a', 'b'])).toEqual([all, options]);
  });

  test('a configuration for tunnels gets options that make it run our command', async () => {
    const session = ['SessionType', 'StdinNull', 'ForkAfterAuthentication'];
    expect(await optionsOf('Host b\n  SessionType none\n', ['b'])).toEqual([[...session, ...all]]);
    expect(await optionsOf('Host *\n  ForkAfterAuthentication yes\n', ['b'])).toEqual([[...session, ...all]]);
  });

  test('options in an included file count', async () => {
    const hidden = join(directory, 'hidden');
    writeFileSync(hidden, 'ProxyJump gateway\n');
    expect(await optionsOf(`Host b\n  Include ${hidden}\n`, ['a', 'b'])).toEqual([all, ['KexAlgorithms']]);
  });

  test('no ProxyCommand is added without the dialler, and nothing without a working ssh', async () => {
    expect(await optionsOf('', ['a'], '/nonexistent')).toEqual([['KexAlgorithms']]);
    expect(
      await new OpenSshOptions(new SshConfiguration(['/nonexistent/ssh']), '/bin/true').options(['--', 'a']),
    ).toEqual([]);
  });

  test("the dialler receives the user's ConnectTimeout", async () => {
    const file = join(directory, 'config');
    writeFileSync(file, 'ConnectTimeout 4\n');
    const options = await new OpenSshOptions(new SshConfiguration(['ssh', '-F', file]), '/bin/true').options([
      '--',
      'a',
    ]);
    expect(options).toContainEqual(['ProxyCommand', "'/bin/true' %h %p 4"]);
  });

  test.each([
    ['Host *\n  # ProxyCommand none of mine\n', ['SHELL=/bin/sh']],
    ['Host b\n  ProxyCommand nc %h %p\n', []],
    ['Match exec "[[ -n $X ]]"\n  User ann\n', []],
  ])("ssh uses /bin/sh unless a command of the configuration needs the user's shell: %j", async (config, changes) => {
    const file = join(directory, 'config');
    writeFileSync(file, config);
    expect(await new OpenSshOptions(new SshConfiguration(['ssh', '-F', file]), '/bin/true').environment()).toEqual(
      changes,
    );
  });
});
