/** Files that users of other tools have, or give by mistake: each is read as its tool reads it, or answered with what to write. */
import { describe, expect, test } from 'vitest';
import { allocateHosts } from '../../launcher/allocation/allocate.ts';
import { fakeMachine } from './allocation-machine.ts';
import { failureFrom } from './failure-from.ts';

function hostsOf(content: string): string[] {
  const { hosts } = allocateHosts({ hostfile: 'hosts', hostList: null }, fakeMachine({ hosts: content }));
  return hosts.map(({ name, user, port, slots, maxSlots }) => {
    const extras = [user && `user=${user}`, port && `port=${port}`].filter(Boolean);
    return [`${name}:${slots ?? '?'}${maxSlots === null ? '' : `/${maxSlots}`}`, ...extras].join(' ');
  });
}

function refused(run: () => unknown): string {
  const failure = failureFrom(run);
  if (failure.type !== 'hostfile') throw new Error(`a failure of type ${failure.type}`);
  const { position, message, remedy } = failure;
  return `${position === null ? '' : `${position.line}:${position.column}: `}${message}\n${remedy ?? ''}`;
}

describe('public hostfiles are read', () => {
  test.each([
    [
      'the documented one of Open MPI',
      'foo.example.com\nbar.example.com slots=2\nyow.example.com slots=4 max-slots=4',
      ['foo.example.com:?', 'bar.example.com:2', 'yow.example.com:4/4'],
    ],
    ['quotes, as in Open MPI', '"node1" slots=2\nnode2 slots="4" username=\'bob\'', ['node1:2', 'node2:4 user=bob']],
    ['lines that end in a carriage return alone', 'node1 slots=4\rnode2 slots=4\r', ['node1:4', 'node2:4']],
    [
      'a pe_hostfile of Grid Engine',
      'c1 16 all.q@c1 UNDEFINED\nc2.cl 8 all.q@c2.cl <NULL>\nc1 4 short.q@c1 0,0:0,1',
      ['c1:20', 'c2.cl:8'],
    ],
    ['a no-break space', 'node1\u00a0slots=4', ['node1:4']],
    ['a user of a Windows domain', 'LAB\\ann@node1 slots=2', ['node1:2 user=LAB\\ann']],
    [
      'names that differ behind the first dot',
      'w.1.foo.net slots=2\nw.2.foo.net slots=2',
      ['w.1.foo.net:2', 'w.2.foo.net:2'],
    ],
    ['comments in another encoding', Buffer.from([0x23, 0xfc, 0x0a]).toString('utf8').concat('node1:2'), ['node1:2']],
    ['a node file of PBS', 'n1.cl\nn1.cl\nn2.cl\nn2.cl\n', ['n1.cl:2', 'n2.cl:2']],
  ])('the file is read with %s', (_name, content, hosts) => {
    expect(hostsOf(content)).toEqual(hosts);
  });
});

describe('a file of another kind is named', () => {
  test.each([
    ['rank 0=aa slot=1:0-2\nrank 1=bb slot=0', /rankfile of Open MPI.*a line for each rank, and --map-by seq/u],
    ['rank 2=+n1 slots=p0:2', /rankfile of Open MPI/u],
    ['127.0.0.1 localhost\n192.168.0.11 node1 node1.cl', /as in \/etc\/hosts.*one name or address/u],
    ['[gpu]\nnode1 ansible_host=10.0.0.1', /inventory of Ansible/u],
    ['[all:children]\ngpu', /inventory of Ansible/u],
    ['node1 ansible_host=10.0.0.1', /inventory of Ansible/u],
    ['all:\n  hosts:\n    node1:', /YAML/u],
    ['- node1\n- node2', /YAML/u],
    ['---\n- node1', /YAML/u],
    ['["node1", "node2"]', /JSON/u],
    ['{\n  "hosts": []\n}', /JSON/u],
    ['Host node1\n  HostName 10.0.0.1', /configuration of ssh.*reads ~\/\.ssh\/config anyway/u],
    ['node1,10.0.0.1 ssh-ed25519 AAAA', /known_hosts/u],
    ['|1|abc=|def= ssh-rsa AAAA', /known_hosts/u],
    ['ssh node1\nssh node2', /leave "ssh" out/u],
    ['NodeName=node1 CPUs=4', /slurm\.conf.*scontrol show hostnames/u],
    ['adm: example0\ngpu: node[1-4]', /groups.*one group/u],
    ['NODELIST NODES PARTITION STATE\nnode[1-4] 4 gpu* idle', /table.*first column/u],
    ['#!/bin/bash\nmpirun -np 4 ./a.out', /script/u],
    ['#!/bin/sh\nexport A=1', /script/u],
  ])('the file %j is named for what it is', (content, message) => {
    expect(refused(() => hostsOf(content))).toMatch(message);
  });

  test.each([
    ['node1 slots=two', 'Ansible'],
    ['[fe80::1] slots=x', 'Ansible'],
    ['[1-3] slots=x', 'JSON'],
    ['hosts:', 'YAML'],
    ['rank slots=x', 'rankfile'],
    ['10.0.0.1 slots=x', '/etc/hosts'],
  ])('the file %j is no such file', (content, kind) => {
    expect(refused(() => hostsOf(content))).not.toContain(kind);
  });
});

describe('a mistake in a line is answered with the line to write', () => {
  test.each([
    ['node1,8\nnode2,8', /1:7: "8" is a number, and no host\nwrite node1:8/u],
    ['node1:4 ifhn=ib-node1', /1:9: .*"ifhn"\n.*leave it out.*NCCL_SOCKET_IFNAME/u],
    ['node1:4 binding=user:0,1', /--bind-to/u],
    ['node1:4 max_cores=8', /write max_slots=8/u],
    ['node1 gpus=8', /write slots=8/u],
    ['node1 ppn=8', /write slots=8/u],
    ['node1 slots=8 boards=1 sockets_per_board=2', /leave it out/u],
    ['node1 hostname=x', /after a host may follow/u],
    ['node1:2:mlx5_0', /write node1:2, and -x NCCL_IB_HCA=mlx5_0/u],
    ['node1*8', /write node1:8/u],
    ['8*node1', /write node1:8/u],
    ['; a comment\nnode1', /a comment begins with #/u],
    ['// a comment\nnode1', /a comment begins with #/u],
    ['node1 slots: 8', /write slots=8/u],
    ['node1 slots 8', /write slots=8/u],
    ['node1 node2 node3', /one host per line, or several with commas/u],
    ['ssh://ann@node1:2222', /write ann@node1 port=2222/u],
    ['node1 slots=*', /leave slots out: .* GPUs/u],
    ['node1 slots=auto', /leave slots out: .* GPUs/u],
    ['^node1', /names no host to use\n.*--exclude node1/u],
    ['evil\\@node1', /"evil\\" is not a user name/u],
  ])('the line %j is answered', (content, message) => {
    expect(refused(() => hostsOf(content))).toMatch(message);
  });

  test('a number among the hosts of -H is no host', () => {
    expect(refused(() => allocateHosts({ hostfile: null, hostList: 'node1,4' }, fakeMachine()))).toContain(
      '"4" is a number, and no host\nwrite node1:4',
    );
  });

  test('numbers alone, and those of a range, are hosts', () => {
    expect(hostsOf('[1-2]:4\n101,102\n7')).toEqual(['1:4', '2:4', '101:?', '102:?', '7:?']);
    expect(hostsOf('node1,[8]')).toEqual(['node1:?', '8:?']);
  });
});
