/** Ranges, lists, and what -H, --include and --exclude make of a hostfile. */
import { describe, expect, test } from 'vitest';
import { allocateHosts, type AllocationRequest } from '../../launcher/allocation/allocate.ts';
import { withDetectedSlots } from '../../launcher/allocation/detected.ts';
import type { HostfileFailure } from '../../launcher/model/failure.ts';
import { fakeMachine } from './allocation-machine.ts';
import { failureFrom } from './failure-from.ts';

type Wishes = Partial<AllocationRequest> & { readonly files?: Readonly<Record<string, string>> };

/** `content` is the hostfile's; null: there is none. */
function allocated(content: string | null, { files = {}, ...wishes }: Wishes = {}) {
  const request = { hostfile: content === null ? null : 'hosts', hostList: null, ...wishes };
  return allocateHosts(request, fakeMachine({ ...files, hosts: content ?? '' }));
}

/** `name:slots(devices)`, with the user before. */
function hostsOf(content: string | null, wishes: Wishes = {}): string {
  return allocated(content, wishes)
    .hosts.map(({ name, user, slots, devices }) => {
      const login = user === null ? name : `${user}@${name}`;
      return `${login}:${slots ?? '?'}${devices === null ? '' : `(${devices.join(',')})`}`;
    })
    .join(' ');
}

function failureOf(content: string | null, wishes: Wishes = {}): HostfileFailure {
  const failure = failureFrom(() => hostsOf(content, wishes));
  if (failure.type !== 'hostfile') throw new Error(`a failure of type ${failure.type}`);
  return failure;
}

describe('ranges', () => {
  test.each([
    ['Slurm syntax', 'a[01-04,07],b[1-2]c', 'a01:? a02:? a03:? a04:? a07:? b1c:? b2c:?'],
    ['pdsh syntax', 'foo[0-10]', Array.from({ length: 11 }, (_, n) => `foo${n}:?`).join(' ')],
    ['zero padding', 'n[08-11]', 'n08:? n09:? n10:? n11:?'],
    ['padding that the numbers outgrow', 'n[98-101]', 'n98:? n99:? n100:? n101:?'],
    ['several in a name, the last one fastest', 'r[1-2]n[1-2]', 'r1n1:? r1n2:? r2n1:? r2n2:?'],
    ['at the beginning', '[1-2]x', '1x:? 2x:?'],
    ['of addresses', '10.0.0.[1-2]:4', '10.0.0.1:4 10.0.0.2:4'],
    ['one number', 'n[5]', 'n5:?'],
    ['any order', 'n[3,1-2]', 'n3:? n1:? n2:?'],
    ['a count for each', 'n[1-2]:4', 'n1:4 n2:4'],
    ['settings for each', 'alice@n[1-2] slots=4', 'alice@n1:4 alice@n2:4'],
    ['settings for a list', 'a,b slots=4', 'a:4 b:4'],
    ['tasks per node', 'a[1-4] TASKS_PER_NODE=2(x3),1', 'a1:2 a2:2 a3:2 a4:1'],
    ['tasks as the variable is called', 'a[1-2],b SLURM_TASKS_PER_NODE=8(x2),4', 'a1:8 a2:8 b:4'],
    ['overlapping ranges add up', 'n[1-2]:2\nn[2-3]:3', 'n1:2 n2:5 n3:3'],
    ['excluded ranges', 'n[1-4]:1\n^n[2-3]', 'n1:1 n4:1'],
    ['exclusion within a list', 'n[1-3],^n2', 'n1:? n3:?'],
    ['a user as a setting', 'n1 slots=2 user=alice', 'alice@n1:2'],
    ['zero itself', 'n[0-1,00-01]', 'n0:? n1:? n00:? n01:?'],
  ])('a hostfile may use ranges: %s', (_name, content, hosts) => {
    expect(hostsOf(content)).toBe(hosts);
  });

  test.each([
    ['a[1-100000000]', 1, 14, 'a[1-100000000] names 100000000 hosts'],
    ['a[1-999][1-999][1-999]', 1, 22, 'a[1-999][1-999][1-999] names 997002999 hosts'],
    [
      'a[1-999999999999999][1-999999999999999]',
      1,
      39,
      'a[1-999999999999999][1-999999999999999] names 9.99999999999998e+29 hosts',
    ],
    ['a[1-9999999999999999]', 3, 18, 'the number is too long'],
    ['a[1-3', 2, 4, 'the "[" of a range is not closed'],
    ['a1-3]', 5, 1, '"]" without "["'],
    ['a[3-1]', 3, 3, '3-1 runs backwards'],
    ['a[]', 3, 1, 'a number is missing'],
    ['a[1,,2]', 5, 1, 'a number is missing'],
    ['a[b]', 3, 1, '"b" is no range'],
    ['a[1:3]', 3, 3, '"1:3" is no range'],
    ['a[1-2-3]', 3, 5, '"1-2-3" is no range'],
    ['a[1-03]', 3, 4, '1-03 has ends of different lengths'],
    ['a[001-03]', 3, 6, '001-03 has ends of different lengths'],
    ['a[[1]', 3, 2, '"[1" is no range'],
    ['a,,b', 3, 1, 'a host name is missing'],
    ['a, b', 3, 1, 'a host name is missing'],
    ['a[1-2] TASKS_PER_NODE=2', 23, 1, 'tasks for 1 host, but the list names 2 hosts'],
    ['a TASKS_PER_NODE=2(x3)', 18, 5, 'tasks for 3 hosts, but the list names 1 host'],
    ['a TASKS_PER_NODE=2(3)', 18, 4, '"2(3)" is no number of tasks'],
    ['a TASKS_PER_NODE=2(x0)', 18, 5, 'the count is repeated 0 times'],
    ['a TASKS_PER_NODE=2(x9999999)', 18, 11, 'tasks for too many hosts'],
    ['a TASKS_PER_NODE=0', 18, 1, 'the number of tasks is 0'],
    ['a:2 TASKS_PER_NODE=2', 5, 14, '"TASKS_PER_NODE" after a:2 has no meaning'],
    ['a "slots"', 4, 5, '"slots" is not a setting of a host'],
    ["a slots='x'", 10, 1, 'the number of slots is "x"'],
    ['a TASKS_PER_NODE=2,1(x131071),3', 31, 1, 'tasks for too many hosts'],
    ['a slots=2 TASKS_PER_NODE=2', 11, 14, 'TASKS_PER_NODE says again what slots says'],
    ['alice@a user=bob', 9, 4, 'alice@a has its user already'],
    ['^a:4', 1, 4, 'an excluded host has no count'],
    ['+n0', 1, 3, '"+n0" is not a host name'],
    ['1:2:3:4', 1, 7, '"1:2:3:4" has more than one colon'],
    ['[1::2::3]', 2, 7, '"1::2::3" is not an IPv6 address'],
  ])('the hostfile %s is rejected with its position', (content, column, length, message) => {
    const failure = failureOf(content);
    expect(failure.message).toBe(message);
    expect(failure.position).toEqual({ source: 'hosts', line: 1, column, length, text: content });
    expect(failure.remedy).toBeTruthy();
  });

  test('the limit of hosts and slots applies to the whole hostfile', () => {
    expect(hostsOf('a[1-131072]').split(' ')).toHaveLength(131_072);
    const failure = failureOf('a[1-100000]\nb[1-100000]\n');
    expect(failure.message).toBe('with b[1-100000] there are more than 131072 hosts');
    expect(failure.position?.line).toBe(2);
    expect(failureOf('a[1-100000]:60000').message).toBe('the hosts have 6000000000 slots in all');
    expect(failureOf('a:60000\na:60000').message).toBe('with this mention a has 120000 slots');
  });

  test.each([
    ['node1 4', 'write node1 slots=4, or node1:4'],
    ['node1 slots:4', 'write slots=4'],
    ['node1 slots', 'write slots=N'],
    ['node1 sluts=4', 'did you mean slots=?'],
    ['node1 node2', 'one host per line, or several with commas between them'],
    ['fe80::1', 'write an IPv6 address in brackets: [fe80::1]'],
    ['a[7-3]', 'write 3-7'],
    ['a[1-03]', 'write 01-03 for names of one length, or 1-3 for names without zeros'],
    ['+n0', 'write --hostfile FILE -H +n0'],
  ])('the failure of "%s" says what to write', (content, remedy) => {
    expect(failureOf(content).remedy).toContain(remedy);
  });
});

describe('-H without a hostfile', () => {
  test.each([
    ['h1:4,h2:2', 'h1:4 h2:2'],
    ['a[1-2],b', 'a1:? a2:? b:?'],
    ['a[1,2]:3', 'a1:3 a2:3'],
    ['foo[0-5],-foo[1-4]', 'foo0:? foo5:?'],
    ['^list', 'x:2 y:1'],
    ['a:1,^list,b:1', 'a:1 x:2 y:1 b:1'],
    ['^list,-x', 'y:1'],
    ['[fe80::1%eth0]:4,[::1:2]', 'fe80::1%eth0:4 ::1:2:?'],
  ])('-H %s selects the expected hosts', (hostList, hosts) => {
    expect(hostsOf(null, { hostList, files: { list: 'x:2\ny slots=1' } })).toBe(hosts);
  });

  test.each([
    ['^nowhere', 1, 'cannot read the hostfile nowhere: there is no such file', '--exclude nowhere'],
    ['a,^', 3, 'the name of a file is missing', '^FILE'],
    ['a,-b:3', 3, 'a host that is left out has no count', '-b'],
    ['-a', null, '-H -a names no host to use', '-H host1'],
    ['a,+n0', 3, 'a relative host counts the hosts of a hostfile, and there is none', '--hostfile'],
    ['+x', 1, '"+x" is no relative host', '+n0'],
    ['a slots=4', 2, 'a blank after a, in a list without blanks', 'write a:4'],
    ['a:8 b:8', 4, 'a blank after a:8, in a list without blanks', 'write a:8,b:8'],
  ])('-H %s is rejected with its position', (hostList, column, message, remedy) => {
    const failure = failureOf(null, { hostList });
    expect(failure.message).toBe(message);
    expect(failure.position?.column ?? null).toBe(column);
    expect(failure.remedy).toContain(remedy);
  });

  test('an error in a file that -H names has its position in that file', () => {
    const failure = failureOf(null, { hostList: 'a,^list', files: { list: 'x:2\ny:?' } });
    expect(failure.position).toMatchObject({ source: 'list', line: 2, column: 3 });
  });
});

test('mentions of hosts keep their order across lists and files', () => {
  const { hosts } = allocated(null, { hostList: 'z,^list,a[1-2],z', files: { list: '\n\n\nb\nz' } });
  expect(hosts.map(({ name, mentions }) => [name, mentions])).toEqual([
    ['z', [0, 2, 5]],
    ['b', [1]],
    ['a1', [3]],
    ['a2', [4]],
  ]);
});

describe('-H beside a hostfile', () => {
  const content = 'n0:4\nn1:4\nalice@n2:4\nn3:4\nn4';
  test.each([
    ['+n0', 'n0:4'],
    ['+n4,+n0', 'n4:? n0:4'],
    ['+n1:2', 'n1:2'],
    ['+e', 'n0:4 n1:4 alice@n2:4 n3:4 n4:?'],
    ['+e:2', 'n0:4 n1:4'],
    ['+n1,+e:2', 'n1:4 n0:4 alice@n2:4'],
    ['+e:1,n0', 'n1:4 n0:4'],
    ['+e:1,+e:1', 'n0:4 n1:4'],
    ['n3,+e', 'n3:4 n0:4 n1:4 alice@n2:4 n4:?'],
    ['+N0', 'n0:4'],
    ['n[1-2]:2', 'n1:2 alice@n2:2'],
    ['-n1', 'n0:4 alice@n2:4 n3:4 n4:?'],
    ['-n[0-3]', 'n4:?'],
    ['n[0-2],-n1', 'n0:4 alice@n2:4'],
    ['bob@n0', 'bob@n0:4'],
    ['^list', 'n3:4'],
  ])('-H %s selects hosts of the hostfile', (hostList, hosts) => {
    expect(hostsOf(content, { hostList, files: { list: 'n3' } })).toBe(hosts);
  });

  test.each([
    ['+n5', '-H asks for host number 5, hosts has 5', '+n0 to +n4'],
    ['+e:6', '6 hosts beyond those named are asked for, only 5 are left in hosts', 'fewer'],
    ['n[0-4],+e', 'some hosts beyond those named are asked for, none is left in hosts', 'fewer'],
    ['n9', 'n9 is not in hosts', 'did you mean n0?'],
    ['bob@n2', '-H says bob@n2, hosts says alice@n2', 'state one user'],
  ])('-H %s is rejected beside the hostfile', (hostList, message, remedy) => {
    const failure = failureOf(content, { hostList });
    expect(failure.message).toBe(message);
    expect(failure.remedy).toContain(remedy);
    expect(failure.position?.source).toBe('-H');
  });
});

describe('--include and --exclude', () => {
  const content = 'w0 slots=4\nw1 slots=4\nw2\n[fe80::1] slots=2';
  test.each([
    ['w0@w1:0,2', 'w0:4 w1:2(0,2)'],
    ['w1:2,0', 'w1:2(0,2)'],
    ['w1:0-2', 'w1:3(0,1,2)'],
    ['w1@w0', 'w0:4 w1:4'],
    ['w1:0@w1:3', 'w1:2(0,3)'],
    ['w1:0@w1', 'w1:4'],
    ['w2:0,7', 'w2:2(0,7)'],
    ['w[0-1]:1', 'w0:1(1) w1:1(1)'],
    ['w0,w2', 'w0:4 w2:?'],
    ['[fe80::1]:1', 'fe80::1:1(1)'],
  ])('--include %s keeps the expected slots', (include, hosts) => {
    expect(hostsOf(content, { include })).toBe(hosts);
  });

  test.each([
    ['w0@w2', 'w1:4 fe80::1:2'],
    ['w0:0@w2', 'w0:3(1,2,3) w1:4 fe80::1:2'],
    ['w0:0-3@w1:1,2@w2', 'w1:2(0,3) fe80::1:2'],
    ['w[0-1],w2', 'fe80::1:2'],
  ])('--exclude %s removes the expected slots', (exclude, hosts) => {
    expect(hostsOf(content, { exclude })).toBe(hosts);
  });

  test('--include and --exclude apply without a hostfile', () => {
    expect(hostsOf(null, { include: 'localhost:0,2' })).toBe('localhost:2(0,2)');
    expect(hostsOf(null, { hostList: 'a:4,b:4', exclude: 'a:0' })).toBe('a:3(1,2,3) b:4');
  });

  test('--exclude filters the selection of -H', () => {
    expect(hostsOf(content, { hostList: 'w1,w0:2', exclude: 'w0:0' })).toBe('w1:4 w0:1(1)');
  });

  test.each([
    [{ include: 'w9' }, 1, 'w9 is none of the hosts to choose from', 'did you mean w0?'],
    [{ include: 'w0@storage' }, 4, 'storage is none of the hosts to choose from', 'the hosts are w0, w1, w2, fe80::1'],
    [{ include: 'w0:4' }, 1, 'w0 has no slot 4, it has 4 (stated at hosts:1)', 'from 0 to 3'],
    [{ include: 'w0:0,w1' }, 6, '"w1" is not the number of a slot', '@ before the next host'],
    [{ include: 'w0:' }, 4, 'the number of a slot is missing', 'w1:0,2'],
    [{ include: 'w2:0-999999' }, 4, 'there is no slot 999999', '0 to 65535'],
    [{ include: 'w2:0-99999999999999999' }, 4, 'the number is too long', '15 digits'],
    [{ include: 'w0@@w1' }, 4, 'a host name is missing', 'letters'],
    [{ exclude: 'w2:0' }, 1, 'w2 states no number of slots, so single ones cannot be left out', 'state it (w2:8)'],
    [{ exclude: 'w[0-2]@[fe80::1]' }, null, 'no host is left to use', 'must leave one'],
  ])('the options %j are rejected with their position', (wishes, column, message, remedy) => {
    const failure = failureOf(content, wishes);
    expect(failure.message).toBe(message);
    expect(failure.position?.column ?? null).toBe(column);
    expect(failure.remedy).toContain(remedy);
  });

  test.each([
    [{ include: 'w1@w0:4' }, 4],
    [{ include: 'w0:0,w9@w1' }, 2],
    [{ include: 'w0@storage' }, 7],
  ])('the position of the error in %j covers the word', (wishes, length) => {
    expect(failureOf(content, wishes).position?.length).toBe(length);
  });

  test('--include rejects a host that the hostfile excludes', () => {
    const without = 'w0:1\nw1:1\nw2:1\n^w1';
    expect(hostsOf(without, { exclude: 'w[0-1]' })).toBe('w2:1');
    expect(failureOf(without, { include: 'w[0-1]' }).message).toBe('w1 is left out already: excluded at hosts:4');
  });

  test('the limit of slots applies to --include', () => {
    const failure = failureOf('w[1-100000]', { include: 'w[1-100000]:0-60000' });
    expect(failure.message).toBe('this names 6000100000 slots');
    expect(hostsOf('w[1-20000]', { hostList: 'w[1-20000]', include: 'w[1-20000]:0' }).split(' ')).toHaveLength(20_000);
  });

  test('--include and --exclude cannot be combined', () => {
    const failure = failureFrom(() => hostsOf(content, { include: 'w0', exclude: 'w1' }));
    expect(failure).toMatchObject({ type: 'usage', message: '--include and --exclude cannot be given together' });
  });
});

const leftOf = (wishes: Wishes) =>
  allocated('n1:1\nn2:1\nn3:1\n^n3', wishes).leftOut.map(({ name, reason }) => `${name}: ${reason}`);

describe('the origin of hosts and slots', () => {
  const explain = (content: string | null, wishes: Wishes = {}) =>
    allocated(content, wishes).hosts.map(({ name, origin }) => `${name} | ${origin.host} | ${origin.text}`);

  test.each<[string | null, Wishes, string]>([
    ['n1:4', {}, 'n1 | hosts:1 | stated at hosts:1'],
    ['\nn[1-1]:4', {}, 'n1 | hosts:2, one of n[1-1] | stated at hosts:2'],
    ['n1:4\nn1', {}, 'n1 | hosts:1 + hosts:2 | 4 at hosts:1 + 1 (no count) at hosts:2'],
    ['n1', {}, 'n1 | hosts:1 | no count at hosts:1: as many as the host has GPUs, or cores if none'],
    ['localhost', {}, 'localhost | hosts:1 | localhost without a count has no limit'],
    [null, {}, 'localhost | no hosts given: this machine | no hosts given: this machine, without a limit'],
    [null, { hostList: 'n1:4' }, 'n1 | -H | stated at -H'],
    ['n1:4', { hostList: 'n1:2' }, 'n1 | hosts:1; picked by -H | 2 of 4 by -H'],
    ['n1:4', { hostList: '+n0' }, 'n1 | hosts:1; picked by -H | stated at hosts:1'],
    ['n1:4', { include: 'n1:0,1' }, 'n1 | hosts:1; kept by --include | 2 of 4 by --include'],
    ['n1:4', { exclude: 'n1:0' }, 'n1 | hosts:1 | 3 of 4 by --exclude'],
  ])('the hostfile %j with the options %j explains its origin', (content, wishes, text) => {
    expect(explain(content, wishes)).toEqual([text]);
  });

  test('the explanation shortens many mentions', () => {
    const [line] = explain('n1\n'.repeat(9));
    expect(line).toContain('1 (no count) at hosts:4 + 5 more');
  });

  test('every unused host has a reason', () => {
    const excluded = 'n3: excluded at hosts:4';
    expect(leftOf({})).toEqual([excluded]);
    expect(leftOf({ hostList: 'n1' })).toEqual([excluded, 'n2: -H does not name it']);
    expect(leftOf({ hostList: '-n1' })).toEqual([excluded, 'n1: excluded at -H']);
    expect(leftOf({ include: 'n1' })).toEqual([excluded, 'n2: --include does not name it']);
    expect(leftOf({ exclude: 'n1' })).toEqual([excluded, 'n1: excluded by --exclude']);
  });

  test('detected slots have an explanation', () => {
    const known = withDetectedSlots(allocated('n1\nn2'), new Map([['n1', { cores: 64, gpus: 8 }]]));
    expect(known.hosts.map(({ slots, origin }) => [slots, origin.host, origin.text])).toEqual([
      [8, 'hosts:1', 'n1 has 8 GPUs'],
      [null, 'hosts:2', 'no count at hosts:2: as many as the host has GPUs, or cores if none'],
    ]);
  });
});
