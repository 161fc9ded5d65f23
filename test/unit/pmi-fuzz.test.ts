/** Whatever a rank writes to its PMI server: the answers that its commands deserve, or a refusal; nothing else is thrown, nothing grows. */
import { expect, test } from 'vitest';
import { ProtocolError } from '../../control/messages/protocol-error.ts';
import { PmiClient } from '../../worker/agent/pmi/client.ts';
import { CommandReader } from '../../worker/agent/pmi/command.ts';
import { KeySpace } from '../../worker/agent/pmi/key-space.ts';
import { randomBytes, seededRandom, type Random } from '../rig/random.ts';

/** Another one with NCCLRUN_TEST_SEED=N. */
const firstSeed = Number(process.env['NCCLRUN_TEST_SEED'] ?? 60_000);

/** A client whose barriers end at once. */
class Asked {
  readonly #keys = new KeySpace();
  readonly #client: PmiClient;
  said = '';
  aborts: number[] = [];

  constructor() {
    this.#client = new PmiClient({
      size: 8,
      program: 2,
      mapping: '',
      keySpaceName: 'kvs',
      get: (key) => this.#keys.get(key),
      put: (key, value) => this.#keys.put(key, value),
      send: (lines) => {
        this.said += lines;
      },
      barrier: () => this.#client.released(),
      abort: (exitCode) => this.aborts.push(exitCode),
      notice: () => {},
    });
  }

  /** Pieces of random sizes, of which the first are often short. */
  receive(bytes: Uint8Array, random: Random): void {
    for (let at = 0; at < bytes.length; ) {
      const end = at + 1 + random(random(2) === 0 ? 8 : 4000);
      this.#client.receive(bytes.subarray(at, end));
      at = end;
    }
  }
}

/** A command, and the answer of a server whose keys are `keys`. */
type Exchange = readonly [ask: string, answer: string];

function exchange(keys: Map<string, string>, random: Random): Exchange {
  const key = `key${random(6)}`;
  const value = ['', 'a=b', 'v'.repeat(random(1025)), '(vector,(0,1,2))'][random(4)] ?? '';
  const found = keys.get(key);
  switch (random(9)) {
    case 0:
      keys.set(key, value);
      return [`cmd=put kvsname=kvs key=${key} value=${value}`, 'cmd=put_result rc=0 msg=success'];
    case 1:
      if (found === undefined)
        return [`cmd=get kvsname=kvs key=${key}`, 'cmd=get_result rc=-1 msg=key_not_found value=unknown'];
      return [`cmd=get  kvsname=kvs\tkey=${key}`, `cmd=get_result rc=0 msg=success value=${found}`];
    case 2:
      return ['cmd=get_universe_size', 'cmd=universe_size rc=0 size=8'];
    case 3:
      return ['cmd=barrier_in', 'cmd=barrier_out rc=0'];
    case 4:
      return [`cmd=put kvsname=other key=${key} value=x`, 'cmd=put_result rc=-1 msg=kvs_not_found'];
    case 5:
      return [`mcmd=get\nkvsname=other\nkey=${key}\nendcmd`, 'cmd=get_result rc=-1 msg=key_not_found value=unknown'];
    case 6:
      return ['cmd=get_appnum words without meaning', 'cmd=appnum rc=0 appnum=2'];
    case 7:
      return ['\n \n', ''];
    default:
      return [`cmd=unknown${random(100)}`, 'cmd=error rc=-1 msg=unknown_command'];
  }
}

function conversation(random: Random): { asked: string; answers: string } {
  const keys = new Map<string, string>();
  const exchanges = Array.from({ length: random(30) }, () => exchange(keys, random));
  return {
    asked: exchanges.map(([ask]) => `${ask}\n`).join(''),
    answers: exchanges.map(([, answer]) => (answer === '' ? '' : `${answer}\n`)).join(''),
  };
}

test('random commands have their answers in order, however their bytes are cut', () => {
  for (let seed = firstSeed; seed < firstSeed + 1000; seed += 1) {
    const random = seededRandom(seed);
    const { asked, answers } = conversation(random);
    const client = new Asked();
    client.receive(Buffer.from(asked, 'latin1'), random);
    expect(client.said, `seed ${seed}`).toBe(answers);
  }
});

/** Says how it went, so that a test can see that it tried both. */
function survives(bytes: Uint8Array, seed: number): 'answered' | 'refused' {
  const client = new Asked();
  const where = `seed ${seed}: ${JSON.stringify(Buffer.from(bytes).toString('latin1'))}`;
  try {
    client.receive(bytes, seededRandom(seed));
  } catch (error) {
    if (!(error instanceof ProtocolError)) throw new Error(where, { cause: error });
    return 'refused';
  }
  expect(client.said, where).toMatch(/^(cmd=[ -~\t]*\n)*$/u);
  const lines = client.said.split('\n').length - 1;
  expect(lines, where).toBeLessThanOrEqual(bytes.filter((byte) => byte === 0x0a).length);
  expect(client.aborts.every(Number.isSafeInteger), where).toBe(true);
  return 'answered';
}

function rounds(count: number, bytesOf: (random: Random) => Uint8Array): void {
  const seen = { answered: 0, refused: 0 };
  for (let seed = firstSeed; seed < firstSeed + count; seed += 1)
    seen[survives(bytesOf(seededRandom(seed)), seed)] += 1;
  expect(seen.answered).toBeGreaterThan(count / 50);
  expect(seen.refused).toBeGreaterThan(count / 50);
}

test('commands with bytes lost, changed or brought in are answered or refused', () => {
  rounds(3000, (random) => {
    const bytes = [...Buffer.from(conversation(random).asked, 'latin1')];
    for (let times = random(6); times > 0; times -= 1) {
      const strange = [0x0a, 0x20, 0x3d, 0x00, 0xff, 0x30 + random(10), random(256)];
      const content = random(3) === 0 ? [] : [strange[random(strange.length)] ?? 0];
      bytes.splice(random(bytes.length + 1), random(4), ...content);
    }
    return Uint8Array.from(bytes);
  });
});

test('words of the protocol in any order are answered or refused', () => {
  const words = [
    'cmd=',
    'mcmd=',
    'put ',
    'get ',
    'key=',
    'value=',
    'exitcode=',
    '-1e99',
    'abort ',
    'kvsname=kvs ',
    '==',
  ];
  const lines = ['\n', '\nendcmd\n', 'cmd=barrier_in\n', 'mcmd=spawn\n', 'cmd=init pmi_version=1\n', '\r\n', ' '];
  const all = [...words, ...lines];
  rounds(3000, (random) => {
    const text = Array.from({ length: 1 + random(30) }, () => all[random(all.length)] ?? '').join('');
    return Buffer.from(`${random(2) === 0 ? 'cmd=' : ''}${text}`, 'latin1');
  });
});

test('random bytes are refused at their first line', () => {
  let refused = 0;
  for (let seed = firstSeed; seed < firstSeed + 500; seed += 1) {
    const random = seededRandom(seed);
    const bytes = Buffer.concat([randomBytes(20 + random(500), random), Buffer.from('\n')]);
    if (survives(bytes, seed) === 'refused') refused += 1;
  }
  expect(refused).toBe(500);
});

test.each([
  ['a line without end', () => 'x'.repeat(1000)],
  ['an mcmd of many lines', () => 'a=b\n'.repeat(100)],
  ['an mcmd of long lines', (at: number) => `${at}=${'x'.repeat(8000)}\n`],
])('%s is refused before it holds more than two MiB', (title, piece) => {
  const reader = new CommandReader();
  if (title.startsWith('an mcmd')) reader.read(Buffer.from('mcmd=spawn\n'));
  let fed = 0;
  expect(() => {
    for (let at = 0; fed < 4 * 1024 * 1024; at++) {
      const bytes = Buffer.from(piece(at));
      reader.read(bytes);
      fed += bytes.length;
    }
  }).toThrow(ProtocolError);
  expect(fed).toBeLessThan(2 * 1024 * 1024);
});
