/** What `ncclrun topo` says of the network plugin of a host, from what the program printed that looked for it. */
import { describe, expect, test } from 'vitest';
import { networkPluginOf, networkPluginText, readNetworkPlugin } from '../../launcher/topology/network-plugin.ts';

const nic = { name: 'eth0', port: 1, speedMbps: 100_000 };
const served = { name: 'Example', nics: [nic, { ...nic, name: 'eth1', speedMbps: 0 }] };

describe('the network plugin of a host', () => {
  test('no line means that no plugin is there', () => {
    expect(networkPluginOf('', 0)).toEqual({ plugin: null, notes: [] });
  });

  test('a plugin that serves is taken, and those before it say why not', () => {
    const output = `loading...\n{"passedOver":"a.so has no device"}\n${JSON.stringify(served)}\n`;
    expect(networkPluginOf(output, 0)).toEqual({ plugin: served, notes: ['no network plugin: a.so has no device'] });
  });

  test('a refusal that has the reason in it tells it once', () => {
    const output =
      '{"passedOver":"a.so is no library"}\n{"refused":"NCCL_NET_PLUGIN=a.so: a.so is no library. Correct it"}\n';
    expect(networkPluginOf(output, 0).notes).toEqual([
      'jobs on several hosts would end: NCCL_NET_PLUGIN=a.so: a.so is no library. Correct it',
    ]);
  });

  test.each([
    [11, 'it ended the process that loaded it by SIGSEGV (segmentation fault); NCCL_NET_PLUGIN=none uses none'],
    [14, 'it did not start within 10 s; NCCL_NET_PLUGIN=none uses none'],
  ])('a plugin that ends its process by signal %i is a note', (waitStatus, why) => {
    expect(networkPluginOf('{"nonsense":1}\n', waitStatus)).toEqual({
      plugin: null,
      notes: [`no network plugin: ${why}`],
    });
  });

  test('the text has a line for each device', () => {
    const rows = 'network plugin Example\ndevice  port  rate\neth0       1  100 Gb/s\neth1       1  -\n';
    expect(networkPluginText(served)).toBe(`\n${rows}`);
    expect(networkPluginText(null)).toBe('');
  });

  test('what another host prints is read again, without what no terminal should get', () => {
    expect(readNetworkPlugin(JSON.parse(JSON.stringify(served)))).toEqual(served);
    expect(readNetworkPlugin({ name: 'a\u001b[31m', nics: [] })?.name).not.toContain('\u001b');
    expect(readNetworkPlugin({ name: 3 })).toBeNull();
  });
});
