/** The PMI-1 server's parts: lines of ranks, keys, and which ranks share a host. */
import { expect, test } from 'vitest';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { decodePuts, encodePuts } from '../../control/messages/pmi.ts';
import { processMapping } from '../../launcher/job/process-mapping.ts';
import { PmiClient } from '../../worker/agent/pmi/client.ts';
import { CommandReader } from '../../worker/agent/pmi/command.ts';
import { KeySpace } from '../../worker/agent/pmi/key-space.ts';
import { seededRandom } from '../rig/random.ts';

function startClient() {
  const keys = new KeySpace();
  const said: string[] = [];
  const log = { aborts: [] as number[], notices: [] as string[], barriers: [] as [string, string][][] };
  const client = new PmiClient({
    size: 4,
    program: 1,
    mapping: '(vector,(0,2,2))',
    keySpaceName: 'kvs',
    get: (key) => keys.get(key),
    put: (key, value) => keys.put(key, value),
    send: (lines) => said.push(lines),
    barrier: (_, puts) => log.barriers.push([...puts]),
    abort: (exitCode) => log.aborts.push(exitCode),
    notice: (sentence) => log.notices.push(sentence),
  });
  const ask = (line: string): string => {
    said.length = 0;
    client.receive(Buffer.from(`${line}\n`, 'latin1'));
    return said.join('');
  };
  return { client, ask, said, log };
}

test.each([
  ['cmd=init pmi_version=1 pmi_subversion=1', 'cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0'],
  ['cmd=init pmi_version=2 pmi_subversion=0', 'cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=-1'],
  ['cmd=get_maxes', 'cmd=maxes rc=0 kvsname_max=256 keylen_max=64 vallen_max=1024'],
  ['cmd=get_appnum', 'cmd=appnum rc=0 appnum=1'],
  ['cmd=get_universe_size', 'cmd=universe_size rc=0 size=4'],
  ['cmd=get_my_kvsname', 'cmd=my_kvsname rc=0 kvsname=kvs'],
  ['cmd=put kvsname=kvs key=a value=b=c', 'cmd=put_result rc=0 msg=success'],
  ['cmd=put kvsname=other key=a value=b', 'cmd=put_result rc=-1 msg=kvs_not_found'],
  [`cmd=put kvsname=kvs key=${'k'.repeat(65)} value=b`, 'cmd=put_result rc=-1 msg=invalid_key_length'],
  [`cmd=put kvsname=kvs key=a value=${'v'.repeat(1025)}`, 'cmd=put_result rc=-1 msg=invalid_value_length'],
  ['cmd=get kvsname=kvs key=none', 'cmd=get_result rc=-1 msg=key_not_found value=unknown'],
  ['cmd=get kvsname=kvs key=PMI_process_mapping', 'cmd=get_result rc=0 msg=success value=(vector,(0,2,2))'],
  ['cmd=lookup_name service=x', 'cmd=lookup_result rc=-1 info=fail msg=not_supported'],
  ['cmd=finalize', 'cmd=finalize_ack rc=0'],
  ['cmd=nonsense', 'cmd=error rc=-1 msg=unknown_command'],
  [
    'mcmd=spawn\nnprocs=1\ntotspawns=1\nspawnssofar=1\nendcmd',
    'cmd=spawn_result rc=-1 status=-1 errmsg=not_supported msg=not_supported',
  ],
])('the server answers %j', (line, answer) => {
  expect(startClient().ask(line)).toBe(`${answer}\n`);
});

test('a barrier gets the keys put since the one before, and ends with barrier_out', () => {
  const { client, ask, said, log } = startClient();
  ask('cmd=put kvsname=kvs key=a value=1');
  expect(ask('cmd=barrier_in')).toBe('');
  client.released();
  expect(said).toEqual(['cmd=barrier_out rc=0\n']);
  ask('cmd=put kvsname=kvs key=b value=2');
  ask('cmd=barrier_in');
  expect(log.barriers).toEqual([[['a', '1']], [['b', '2']]]);
  expect(() => ask('cmd=get_maxes')).toThrow(ProtocolError);
});

test('an abort is reported with its status, or with 1 where the line has none', () => {
  const { ask, log } = startClient();
  ask('cmd=abort exitcode=7');
  ask('cmd=abort exitcode=x');
  expect(log.aborts).toEqual([7, 1]);
});

test.each([['a=b'], ['nothing'], ['cmd=get_maxes \u0001'], ['x'.repeat(8193)]])(
  'the server refuses the malformed line %j',
  (line) => {
    expect(() => startClient().ask(line)).toThrow(ProtocolError);
  },
);

test('commands are the same however their bytes are cut', () => {
  const text = 'cmd=get_maxes\nmcmd=spawn\nnprocs=2\nendcmd\n\ncmd=put kvsname=k key=a value=b\n';
  const whole = new CommandReader().read(Buffer.from(text));
  expect(whole.map(({ name }) => name)).toEqual(['get_maxes', 'spawn', 'put']);
  for (let cut = 0; cut <= text.length; cut++) {
    const reader = new CommandReader();
    expect([...reader.read(Buffer.from(text.slice(0, cut))), ...reader.read(Buffer.from(text.slice(cut)))]).toEqual(
      whole,
    );
  }
});

test('random bytes are answered or refused, and nothing else happens', () => {
  const random = seededRandom(7);
  const words = [
    'cmd=',
    'mcmd=',
    'put',
    'get',
    'key=',
    'value=',
    'barrier_in',
    'endcmd',
    '\n',
    ' ',
    '=',
    '\u0000',
    'kvsname=kvs',
    'ÿ',
  ];
  let refused = 0;
  for (let round = 0; round < 2000; round++) {
    const { client } = startClient();
    const text = Array.from({ length: 1 + random(40) }, () => words[random(words.length)] ?? '').join('');
    try {
      client.receive(Buffer.from(text, 'latin1'));
    } catch (error) {
      expect(error).toBeInstanceOf(ProtocolError);
      refused += 1;
    }
  }
  expect(refused).toBeGreaterThan(100);
  expect(refused).toBeLessThan(2000);
});

test('a key space refuses keys that would not fit', () => {
  const keys = new KeySpace();
  const value = 'v'.repeat(1024 * 1024);
  let stored = 0;
  while (keys.put(`key${stored}`, value)) stored += 1;
  expect(stored).toBe(63);
  expect(keys.put('key0', 'short')).toBe(true);
  expect(keys.get('key0')).toBe('short');
});

test('a contribution is decoded as it was encoded', () => {
  const puts = new Map([
    ['a', '1'],
    ['b', ''],
  ]);
  expect(decodePuts(encodePuts(puts))).toEqual([...puts]);
  expect(() => decodePuts(Buffer.from([9, 0, 0, 0]))).toThrow(ProtocolError);
});

test.each([
  [[0, 0, 0, 0], '(vector,(0,1,4))'],
  [[0, 0, 1, 1, 2, 2], '(vector,(0,3,2))'],
  [[0, 1, 2, 0, 1, 2], '(vector,(0,3,1))'],
  [[0, 0, 0, 1, 2, 2], '(vector,(0,1,3),(1,1,1),(2,1,2))'],
  [[0, 0, 1, 0, 0, 1], '(vector,(0,1,2),(1,1,1))'],
])('ranks on hosts %j have their process mapping', (hosts, mapping) => {
  expect(processMapping(hosts)).toBe(mapping);
});

test('a process mapping that is too long for a value is left out', () => {
  expect(processMapping(Array.from({ length: 4001 }, (_, rank) => (rank * rank * 7) % 31))).toBe('');
});
