import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { grammarNames } from '../../launcher/allocation/print/grammar-names.ts';
import { isLocal } from '../../launcher/allocation/grammar/machine.ts';
import type { HostfileFailure } from '../../launcher/model/failure.ts';
import { fakeMachine } from './allocation-machine.ts';
import { failureFrom } from './failure-from.ts';

function hostfileFailure(run: () => unknown): HostfileFailure {
  const failure = failureFrom(run);
  if (failure.type !== 'hostfile') throw new Error(`a failure of type ${failure.type}`);
  return failure;
}

/** `name: slots/max user port`, what a table needs of a host. */
function hostsOf(content: string, hostList: string | null = null): string[] {
  const { hosts } = allocateHosts({ hostfile: 'hosts', hostList }, fakeMachine({ hosts: content }));
  return hosts.map(({ name, user, port, slots, maxSlots, local }) => {
    const extras = [user && `user=${user}`, port && `port=${port}`, local && 'local'].filter(Boolean);
    return [`${name}:${slots ?? '?'}${maxSlots === null ? '' : `/${maxSlots}`}`, ...extras].join(' ');
  });
}

describe('hostfiles as Windows writes them', () => {
  test.each([
    ['with a mark', Buffer.from([0xff, 0xfe, 0x61, 0, 0x0a, 0])],
    ['big-endian with a mark', Buffer.from([0xfe, 0xff, 0, 0x61])],
    ['without a mark', Buffer.from([0x61, 0, 0x0a, 0])],
  ])('UTF-16 %s is named', (_, content) => {
    const directory = mkdtempSync(join(tmpdir(), 'hostfile-'));
    const path = join(directory, 'hosts');
    writeFileSync(path, content);
    const { message } = hostfileFailure(() => allocateHosts({ hostfile: path, hostList: null }));
    rmSync(directory, { recursive: true });
    expect(message).toContain('it is UTF-16, and hostfiles are UTF-8: iconv -f UTF-16 -t UTF-8');
  });
});

describe('valid hostfiles', () => {
  test.each([
    ['one host', 'node1', ['node1:?']],
    ['slots', 'node1 slots=4', ['node1:4']],
    ['blanks around =', 'node1 slots = 4', ['node1:4']],
    ['tabs and trailing blanks', '\tnode1\tslots=4  ', ['node1:4']],
    ['max_slots', 'node1 slots=4 max_slots=8', ['node1:4/8']],
    ['max-slots', 'node1 max-slots=8 slots=4', ['node1:4/8']],
    ['max_slots alone', 'node1 max_slots=8', ['node1:?/8']],
    ['user', 'alice@node1 slots=1', ['node1:1 user=alice']],
    ['user with an @', 'alice@corp@node1:1', ['node1:1 user=alice@corp']],
    ['port', 'node1 port=2222 slots=1', ['node1:1 port=2222']],
    ['MPICH', 'node1:4', ['node1:4']],
    ['MPICH with user', 'alice@node1:4', ['node1:4 user=alice']],
    ['IPv6', '[fe80::1]:4', ['fe80::1:4']],
    ['IPv6 with scope', '[fe80::1%eth0] slots=2', ['fe80::1%eth0:2']],
    ['IPv4', '10.0.0.1:4', ['10.0.0.1:4']],
    ['comments and blank lines', '# head\n\nnode1:1 # first\n  # more\nnode2:2#x', ['node1:1', 'node2:2']],
    ['Windows line ends and a BOM', '\uFEFFnode1:1\r\nnode2 slots=2\r\n', ['node1:1', 'node2:2']],
    ['mixed grammars', 'node1:1\nnode2 slots=2', ['node1:1', 'node2:2']],
    ['the same host adds up', 'node1:1\nnode2:2\nnode1 slots=3', ['node1:4', 'node2:2']],
    ['letter case does not matter', 'Node1:1\nnode1:3', ['Node1:4']],
    ['mentions without count are one slot each', 'node1\nnode1\nnode1', ['node1:3']],
    ['max_slots adds up', 'node1 slots=1 max_slots=2\nnode1 slots=1 max_slots=2', ['node1:2/4']],
    ['a user stated once', 'node1:1\nalice@node1:1', ['node1:2 user=alice']],
    ['exclusion after', 'node1:1\nnode2:1\n^node1', ['node2:1']],
    ['exclusion before', '^node1\nnode1:1\nnode2:1', ['node2:1']],
    ['exclusion of nobody', 'node1:1\n^node7', ['node1:1']],
    ['this machine', 'localhost:2', ['localhost:2 local']],
    ['this machine by its names', 'localhost:2\nhead:1\nhead.cluster:1\n127.0.0.1:1', ['localhost:5 local']],
    ['zero padding survives', 'n08:1\nn8:1', ['n08:1', 'n8:1']],
  ])('the parser reads a valid hostfile: %s', (_name, content, hosts) => {
    expect(hostsOf(content)).toEqual(hosts);
  });
});

describe('-H', () => {
  test.each([
    ['a', ['a:?']],
    ['a:8,b:8', ['a:8', 'b:8']],
    ['a, b:2', ['a:?', 'b:2']],
    ['a,a,b', ['a:2', 'b:?']],
    ['a:2,a', ['a:3']],
    ['me@localhost', ['localhost:? user=me local']],
    ['you@localhost', ['localhost:? user=you']],
    ['[::1]:4', ['::1:4 local']],
  ])('-H %s gives the expected hosts', (hostList, hosts) => {
    const allocation = allocateHosts({ hostfile: null, hostList }, fakeMachine());
    const seen = allocation.hosts.map((host) =>
      [`${host.name}:${host.slots ?? '?'}`, host.user && `user=${host.user}`, host.local && 'local']
        .filter(Boolean)
        .join(' '),
    );
    expect(seen).toEqual(hosts);
  });

  test('-H filters a hostfile and determines the order', () => {
    const content = 'node1 slots=4\nnode2 slots=4\nalice@node3 slots=4 port=22';
    expect(hostsOf(content, 'node3,node1')).toEqual(['node3:4 user=alice port=22', 'node1:4']);
    expect(hostsOf(content, 'node2:2')).toEqual(['node2:2']);
  });

  test('-H cannot add hosts or slots to a hostfile', () => {
    const failure = hostfileFailure(() => hostsOf('node1 slots=4', 'node1,node2'));
    expect(failure.message).toBe('node2 is not in hosts');
    expect(failure.position).toMatchObject({ source: '-H', line: 1, column: 7, length: 5 });
    expect(hostfileFailure(() => hostsOf('node1 slots=4', 'node1:5')).message).toBe(
      '-H wants 5 slots of node1, hosts gives it 4',
    );
  });
});

describe('invalid hostfiles', () => {
  test.each([
    ['node1 slots=four', 1, 13, 4, 'the number of slots is "four"'],
    ['node1 slots=0', 1, 13, 1, 'the number of slots is 0'],
    ['node1 slots=-1', 1, 13, 2, 'the number of slots is "-1"'],
    ['node1 slots=1e3', 1, 13, 3, 'the number of slots is "1e3"'],
    ['node1 slots=99999', 1, 13, 5, 'the number of slots is "99999"'],
    ['node1 slots=', 1, 12, 1, 'slots has no value'],
    ['node1 slots', 1, 7, 5, '"slots" is not a setting of a host'],
    ['node1 node2', 1, 7, 5, '"node2" is not a setting of a host'],
    ['node1 slot=4', 1, 7, 4, 'unknown setting "slot"'],
    ['node1 slots=4 slots=5', 1, 15, 5, 'slots is stated twice for one host'],
    ['node1 slots=4 max_slots=2', 1, 25, 1, 'max_slots is 2, less than slots, which is 4'],
    ['node1 port=70000', 1, 12, 5, 'the port is "70000"'],
    ['node1:', 1, 7, 1, 'the number of slots is missing'],
    ['node1:x', 1, 7, 1, 'the number of slots is "x"'],
    ['node1:4 slots=4', 1, 9, 5, '"slots" after node1:4 has no meaning'],
    ['fe80::1', 1, 1, 7, '"fe80::1" has more than one colon'],
    ['[fe80::1', 1, 1, 8, 'the "[" of an IPv6 address is not closed'],
    ['[node1]:4', 1, 2, 5, '"node1" is not an IPv6 address'],
    ['[fe80::1]x', 1, 10, 1, '"x" after "]" has no meaning'],
    ['-oProxyCommand=touch', 1, 1, 14, '"-oProxyCommand" is not a host name'],
    ['node1;reboot', 1, 1, 12, '"node1;reboot" is not a host name'],
    ['$(reboot):4', 1, 1, 9, '"$(reboot)" is not a host name'],
    ['-l@node1', 1, 1, 2, '"-l" is not a user name'],
    ['@node1', 1, 1, 1, '"" is not a user name'],
    ['alice@', 1, 7, 1, 'a host name is missing'],
    ['^node1 slots=4', 1, 1, 6, 'an excluded host has no settings'],
    ['= 4', 1, 1, 1, '"=" is not a host name'],
    ['# fine\nnode1:1\n  node2 slots=?', 3, 15, 1, 'the number of slots is "?"'],
  ])('the hostfile %s is rejected with its position', (content, line, column, length, message) => {
    const failure = hostfileFailure(() => hostsOf(content));
    expect(failure.message).toBe(message);
    expect(failure.position).toEqual({ source: 'hosts', line, column, length, text: content.split('\n')[line - 1] });
    expect(failure.remedy).toBeTruthy();
  });

  test('two users for one host are rejected', () => {
    const failure = hostfileFailure(() => hostsOf('alice@node1:1\nbob@node1:1'));
    expect(failure.message).toBe('node1 has two users: alice and bob');
    expect(failure.position?.line).toBe(2);
  });

  test.each([
    ['a,,b', 3, 'a host name is missing'],
    ['', 1, 'a host name is missing'],
    ['a:2,b:x', 7, 'the number of slots is "x"'],
  ])('-H "%s" is rejected with its position', (hostList, column, message) => {
    const failure = hostfileFailure(() => allocateHosts({ hostfile: null, hostList }, fakeMachine()));
    expect(failure.message).toBe(message);
    expect(failure.position).toMatchObject({ source: '-H', line: 1, column });
  });

  test('a hostfile that is missing, empty or excludes all hosts is rejected', () => {
    const missing = hostfileFailure(() => allocateHosts({ hostfile: 'nowhere', hostList: null }, fakeMachine()));
    expect(missing.message).toBe('cannot read the hostfile nowhere: there is no such file');
    expect(hostfileFailure(() => hostsOf('# nobody\n')).message).toBe('hosts names no host to use');
    expect(hostfileFailure(() => hostsOf('node1:1\n^node1')).message).toBe('hosts names no host to use');
  });
});

test('this machine is used without a limit when no hosts are given', () => {
  const { hosts } = allocateHosts({ hostfile: null, hostList: null }, fakeMachine());
  expect(hosts).toMatchObject([
    { name: 'localhost', local: true, slots: null, origin: { kind: 'localhost-unlimited' } },
  ]);
});

describe('names of this machine', () => {
  test.each([
    ['localhost', true],
    ['LOCALHOST', true],
    ['127.0.0.1', true],
    ['127.1.2.3', true],
    ['::1', true],
    ['head', true],
    ['head.cluster', true],
    ['HEAD', true],
    ['head.other', false],
    ['header', false],
    ['128.0.0.1', false],
    ['node1', false],
  ])('isLocal("%s") is %s', (name, local) => {
    expect(isLocal(name, null, fakeMachine())).toBe(local);
  });

  test('isLocal does not shorten an IP address at its dots', () => {
    expect(isLocal('10.0.0.1', null, fakeMachine({}, '10'))).toBe(false);
  });
});

const sample = (name: string) => hostsOf(readFileSync(new URL(`../../hostfiles/${name}`, import.meta.url), 'utf8'));

describe('the samples in hostfiles/', () => {
  test('the openmpi sample gives its hosts', () => {
    expect(sample('openmpi')).toEqual([
      'node1:10',
      'node2:8/16',
      'node3:4 user=alice',
      'node4:2 port=2222',
      'fe80::1:4',
    ]);
  });

  test('the mpich sample gives its hosts', () => {
    expect(sample('mpich')).toEqual(['node1:8', 'node2:10', 'node3:4 user=alice', 'node4:?', 'fe80::1:4']);
  });

  test('the deepspeed sample gives its hosts', () => {
    expect(sample('deepspeed')).toEqual(['worker-0:8', 'worker-1:8', 'worker-2:4']);
  });

  test('the horovod sample gives its hosts', () => {
    expect(sample('horovod')).toEqual(['gpu1:4', 'gpu2:4', 'gpu3:2']);
  });

  test('the slurm sample gives its hosts', () => {
    const counted = ['n08:8', 'n09:8', 'n10:8', 'n11:4'];
    const racks = ['rack1-blade0', 'rack1-blade1', 'rack2-blade0', 'rack2-blade1', 'login'];
    expect(sample('slurm')).toEqual([...counted, ...racks.map((name) => `${name}:?`)]);
  });

  test('the pdsh sample gives its hosts', () => {
    const foo = [0, 1, 2, 3, 7, 10].map((number) => `foo${number}:?`);
    expect(sample('pdsh')).toEqual([...foo, 'bar01:? user=alice', 'bar02:? user=alice']);
  });

  test('every grammar has one sample', () => {
    const folder = new URL('../../hostfiles/', import.meta.url);
    expect(readdirSync(folder).toSorted()).toEqual(grammarNames.filter((name) => name !== 'json').toSorted());
  });
});
