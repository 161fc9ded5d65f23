/** Hostfiles and lists at their borders: addresses, numbers, and the places that messages point at. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { allocateHosts, type AllocationRequest } from '../../launcher/allocation/allocate.ts';
import { thisMachine } from '../../launcher/allocation/grammar/machine.ts';
import { maximumHosts, maximumSlotsInAll, Reading } from '../../launcher/allocation/grammar/reading.ts';
import { fakeMachine } from './allocation-machine.ts';
import { failureFrom } from './failure-from.ts';

const allocated = (content: string, wishes: Partial<AllocationRequest> = {}) =>
  allocateHosts({ hostfile: 'hosts', hostList: null, ...wishes }, fakeMachine({ hosts: content, more: 'x:1\ny:2\n' }));
const hostsOf = (content: string, wishes: Partial<AllocationRequest> = {}) =>
  allocated(content, wishes).hosts.map(
    ({ name, slots, port }) => `${name} ${slots ?? '?'}${port === null ? '' : ` ${port}`}`,
  );

/** `place+length message; remedy` */
function refused(run: () => unknown): string {
  const failure = failureFrom(run);
  if (failure.type !== 'hostfile') throw new Error(`a failure of type ${failure.type}`);
  const { message, position, remedy } = failure;
  return `${position === null ? '' : `${position.source}:${position.line}:${position.column}+${position.length} `}${message}; ${remedy}`;
}

describe('IPv6 addresses', () => {
  test.each([
    '::',
    '::1',
    '1::',
    'fe80::1',
    '1:2:3:4:5:6:7:8',
    '1:2:3:4:5:6:7::',
    '::2:3:4:5:6:7:8',
    '1:2:3::5:6:7:8',
    'ffff:FFFF::',
    '::10.0.0.1',
    '1:2:3:4:5:6:10.0.0.1',
    '1:2:3:4::10.0.0.1',
    'fe80::1%eth0',
    `fe80::1%${'x'.repeat(64)}`,
  ])('[%s]:2 is a host', (address) => {
    expect(hostsOf(`[${address}]:2`)).toEqual([`${address} 2`]);
  });

  test.each([
    '1:2:3:4:5:6:7',
    '1:2:3:4:5:6:7:8:9',
    '1:2:3:4:5:6:7:8::',
    '1::2::3',
    '12345::',
    'g::1',
    '::10.0.0',
    '1:2:3:4:5:6:7:10.0.0.1',
    '1:2:3:4:5:10.0.0.1',
    'fe80::1%',
    'fe80::1%a%b',
    `fe80::1%${'x'.repeat(65)}`,
    'fe80::1%a/b',
  ])('[%s] is none', (address) => {
    expect(refused(() => hostsOf(`[${address}]`))).toBe(
      `hosts:1:2+${address.length} "${address}" is not an IPv6 address; brackets hold an IPv6 address, [fe80::1], or numbers, node[1-8]`,
    );
  });
});

describe('the places that messages point at', () => {
  test.each([
    ['a [::1', 'hosts:1:3+4 '],
    ['[::1', 'hosts:1:1+4 the "[" of an IPv6 address is not closed; write [fe80::1] or [fe80::1]:4'],
    ['[::1]x', 'hosts:1:6+1 "x" after "]" has no meaning; write [fe80::1]:4 for four slots'],
    ['::1', 'hosts:1:1+3 "::1" has more than one colon; write an IPv6 address in brackets: [::1]'],
    [
      'a:b:c',
      'hosts:1:1+5 "a:b:c" has more than one colon; write host:4 for four slots, and an IPv6 address in brackets: [fe80::1]:4',
    ],
    ['x!y@a', 'hosts:1:1+3 "x!y" is not a user name; write user@host'],
    ['a:1\n^b:2', 'hosts:2:'],
    ['a port=0', 'hosts:1:8+1 '],
    ['a port=65536', 'hosts:1:8+5 '],
    ['a:0', 'hosts:1:3+1 '],
    ['a slots=3 max_slots=2', 'hosts:1:21+1 '],
    ['a slto=3', 'hosts:1:3+4 '],
  ])('%j is refused at its place', (content, message) => {
    expect(refused(() => hostsOf(content)).slice(0, message.length)).toBe(message);
  });

  test('numbers at their borders are taken', () => {
    expect(hostsOf('a port=1\nb port=65535\nc:1\nd slots=2 max_slots=2')).toEqual(['a ? 1', 'b ? 65535', 'c 1', 'd 2']);
  });

  test.each([
    ['a,,b', '-H:1:3+1 a host name is missing; write -H host1,host2:4'],
    ['-a:2', '-H:1:1+4 a host that is left out has no count; write -a'],
    ['a b', '-H:1:2+1 '],
    ['^none', '-H:1:1+5 cannot read the hostfile none: there is no such file; '],
    ['a,+x', '-H:1:3+2 '],
  ])('the list %j is refused at its place', (hostList, message) => {
    expect(refused(() => hostsOf('', { hostfile: null, hostList })).slice(0, message.length)).toBe(message);
  });

  test('a host that a hostfile excludes has no count', () => {
    expect(refused(() => hostsOf('b:1\n^a:4\n'))).toBe('hosts:2:1+4 an excluded host has no count; write ^a');
  });

  test('an empty hostfile is refused', () => {
    expect(refused(() => hostsOf('# nothing\n'))).toMatch(/hosts/u);
  });
});

describe('--include and --exclude', () => {
  const five = 'a:2\nb:2\nc:2\nd:2\ne:2';

  test.each([
    ['--include', 'xyz', '--include:1:1+3 xyz is none of the hosts to choose from; the hosts are a, b, c, d …'],
    [
      '--include',
      'a:0,7',
      '--include:1:1+5 a has no slot 7, it has 2 (stated at hosts:1); its slots count from 0 to 1',
    ],
    [
      '--include',
      'a:x',
      '--include:1:3+1 "x" is not the number of a slot; write w1:0,2 or w1:0-3, and @ before the next host: w0:0@w1',
    ],
    ['--include', 'a:0,', '--include:1:5+1 the number of a slot is missing; '],
    ['--include', 'b:65536', '--include:1:3+5 there is no slot 65536; slots count from 0 to 65535'],
    ['--exclude', 'a@x', '--exclude:1:3+1 x is none of the hosts to choose from; '],
  ])('%s %s is refused', (option, value, message) => {
    const wishes = option === '--include' ? { include: value } : { exclude: value };
    expect(refused(() => hostsOf(five, wishes)).slice(0, message.length)).toBe(message);
  });

  test('four hosts are named without dots, and a near one is suggested', () => {
    expect(refused(() => hostsOf('a:2\nb:2\nc:2\nd:2', { include: 'xyz' }))).toMatch(/; the hosts are a, b, c, d$/u);
    expect(refused(() => hostsOf('node1:2\nnode2:2', { include: 'nodee1' }))).toMatch(/; did you mean node1\?$/u);
  });

  test('--exclude may name who is left out already, and --include may not', () => {
    expect(hostsOf('a:1\nb:1\n^b', { exclude: 'b' })).toEqual(['a 1']);
    expect(refused(() => hostsOf('a:1\nb:1\n^b', { include: 'b' }))).toMatch(
      /^--include:1:1\+1 b is left out already: .*; decide for one of the two$/u,
    );
  });
});

describe('how much may be read', () => {
  test('as many hosts as there may be, and not one more', () => {
    const reading = new Reading();
    const position = { source: 's', line: 1, column: 1, text: 'x', length: 1 };
    reading.take(maximumHosts, position);
    expect(refused(() => reading.take(1, position))).toContain(`there are more than ${maximumHosts}`);
    expect(refused(() => new Reading().take(maximumHosts + 1, position))).toContain(`names ${maximumHosts + 1} hosts`);
    expect(maximumSlotsInAll).toBe(16_777_216);
  });

  test('a file is read whole, and what never ends is given up', () => {
    const directory = mkdtempSync(join(tmpdir(), 'ncclrun-machine-'));
    afterAll(() => rmSync(directory, { recursive: true }));
    const path = join(directory, 'hosts');
    const content = 'node1\n'.repeat(30_000);
    writeFileSync(path, content);
    expect(thisMachine.readFile(path)).toBe(content);
    writeFileSync(path, '');
    expect(thisMachine.readFile(path)).toBe(content);
    expect(() => thisMachine.readFile('/dev/zero')).toThrow('it has more than 64 MiB, which no hostfile needs');
    expect(() => thisMachine.readFile(join(directory, 'none'))).toThrow('ENOENT');
  });
});

describe('mentions of one name with several ports', () => {
  test.each([
    ['two ports are two hosts', 'a port=1 slots=2\na port=2 slots=3', ['a:1 2 1', 'a:2 3 2']],
    ['one port is stated for all mentions', 'a port=1 slots=2\na slots=3', ['a 5 1']],
    ['no port is stated', 'a slots=2\na slots=3', ['a 5']],
    ['a mention without a port is a third host', 'a port=1\na port=2\na', ['a:1 ? 1', 'a:2 ? 2', 'a ?']],
    [
      'a port of this machine is another host',
      'localhost slots=2\nlocalhost port=2222 slots=3',
      ['localhost 2', 'localhost:2222 3 2222'],
    ],
    ['the port of ssh is this machine itself', 'localhost slots=2\nlocalhost port=22 slots=3', ['localhost 5 22']],
    ['one port of this machine keeps its name', 'localhost port=2222 slots=3', ['localhost 3 2222']],
  ])('%s', (_title, content, expected) => {
    expect(hostsOf(content)).toEqual(expected);
  });
});
