/** Connections from somebody else to an engine's TCP listener are dropped and the communicator works on. */
import { createHmac } from 'node:crypto';
import { closeSync, openSync, readFileSync, readSync } from 'node:fs';
import { expect, it } from 'vitest';
import { HEADER } from '../../control/plan/layout.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { Steering, type SteerableRank } from '../rig/steering.ts';
import { until } from '../rig/until.ts';

const LISTENING = '0A';
const SSH_PORT = 22;

const HELLO_MAGIC = 0x544e434e;
const HELLO_VERSION = 2;
const HELLO_BYTES = 48;
/** Magic, version, number of the socket and of the listener; how many sockets there are. The rest is chosen by whoever connects. */
const CHECKED_BYTES = [...Array.from({ length: 16 }, (_, at) => at), 24, 25];
const CHALLENGE_BYTES = 48;
const PLAN_BEGIN_BYTES = 256;

/** Ports on which the rank's host listens, sshd's left out. */
function listeningPorts(rank: SteerableRank): number[] {
  const tables = ['tcp', 'tcp6'].map((name) => readFileSync(`/proc/${rank.machinePid}/net/${name}`, 'utf8'));
  const rows = tables.flatMap((table) => table.trim().split('\n').slice(1)).map((row) => row.trim().split(/\s+/));
  const ports = rows.filter((row) => row[3] === LISTENING).map((row) => parseInt(row[1]?.split(':')[1] ?? '', 16));
  return [...new Set(ports)].filter((port) => port !== SSH_PORT);
}

/** What a peer that knows the plan's token says first to the rank's out-of-band listener (native/net/socket/wire.h, native/net/oob). */
function helloTo(rank: SteerableRank): Buffer {
  const name = Buffer.from('oob:    ');
  name.writeUInt32LE(rank.rank, 4);
  const hello = Buffer.alloc(HELLO_BYTES);
  hello.writeUInt32LE(HELLO_MAGIC, 0);
  hello.writeUInt16LE(HELLO_VERSION, 4);
  createHmac('sha256', planOf(rank).subarray(HEADER.token, HEADER.token + 16))
    .update(name)
    .digest()
    .copy(hello, 8, 0, 8);
  hello.writeUInt16LE(1, 24);
  return hello;
}

/** The beginning of the plan that the rank has mapped. */
function planOf({ machinePid }: SteerableRank): Buffer {
  const maps = readFileSync(`/proc/${machinePid}/maps`, 'utf8').split('\n');
  const start = maps.find((line) => line.includes('memfd:ncclrun-plan'))?.split('-')[0] ?? '';
  const memory = openSync(`/proc/${machinePid}/mem`, 'r');
  const bytes = Buffer.alloc(PLAN_BEGIN_BYTES);
  readSync(memory, bytes, 0, bytes.length, BigInt(`0x${start}`));
  closeSync(memory);
  return bytes;
}

/** Connects, says each of the attacks on a connection of its own, and prints how many bytes were answered in all. */
const attacker = `
const [port, ...attacks] = process.argv.slice(1);
let bytes = 0;
const say = (attack) => new Promise((resolve) => {
  const socket = require('node:net').connect(Number(port), '10.77.0.11', () => socket.end(Buffer.from(attack, 'base64')));
  socket.on('data', (chunk) => { bytes += chunk.length; socket.destroy(); });
  socket.on('error', () => undefined);
  socket.on('close', resolve);
});
Promise.all(attacks.map(say)).then(() => console.log(bytes));
`;

/** Bytes that the engines of the rank's host answer. */
async function answersTo(cluster: Cluster, rank: SteerableRank, ...output: readonly Buffer[]): Promise<number> {
  const texts = output.map((bytes) => bytes.toString('base64'));
  const ports = listeningPorts(rank).map(String);
  const answers = ports.map((port) => cluster.inLogin(process.execPath, '-e', attacker, port, ...texts));
  return (await Promise.all(answers)).reduce((sum, answered) => sum + Number(answered), 0);
}

describeIf(clusterUnavailable(), 'an engine’s listener', () => {
  it('the listener answers only who knows its number, and admits nobody without a proof', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    await using command = Command.start(['-H', 'h1:2,h2:1', ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(3);
    const [first] = ranks;
    if (first === undefined) throw new Error('no rank 0');
    await Promise.all(ranks.map((rank) => rank.init()));
    const sums = async (): Promise<void> =>
      expect(await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)))).toEqual(ranks.map(() => [3, 3]));
    await sums();
    const right = helloTo(first);
    const changed = CHECKED_BYTES.map((at) => {
      const hello = Buffer.from(right);
      hello.writeUInt8(hello.readUInt8(at) ^ 1, at);
      return hello;
    });
    const cut = Array.from({ length: HELLO_BYTES }, (_, length) => right.subarray(0, length));
    expect(await answersTo(cluster, first, ...changed, ...cut)).toBe(0);
    const unproved = Buffer.concat([right, Buffer.alloc(32)]);
    expect(await answersTo(cluster, first, right, unproved)).toBe(2 * CHALLENGE_BYTES);
    await sums();
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(0);
  });

  it('the listener drops noise, truncated greetings and silent connections, before and after ranks connect', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    const argv = ['-H', 'h1:2,h2:1', ...steering.options, steering.program];
    await using command = Command.start(argv, { cluster });
    const ranks = await steering.ranks(3);
    const [first, ...others] = ranks;
    if (first === undefined) throw new Error('no rank 0');

    const disturb = async (): Promise<void> => {
      const ports = await until('an engine listens', () => {
        const found = listeningPorts(first);
        return found.length > 0 && found;
      });
      for (const port of ports) {
        const way = `/dev/tcp/10.77.0.11/${port}`;
        for (const send of [
          'head -c 100000 /dev/urandom',
          'head -c 64 /dev/zero',
          'printf x',
          'printf "GET / HTTP/1.1\\r\\n\\r\\n"',
        ]) {
          await cluster.inLogin('bash', '-c', `${send} 2>/dev/null >${way} || true`);
        }
        await cluster.inLogin('bash', '-c', `for i in 1 2 3 4 5 6 7 8; do exec {fd}<>${way} || break; done; true`);
      }
    };

    const joining = first.init();
    await disturb();
    await Promise.all([joining, ...others.map((rank) => rank.init())]);
    await disturb();
    expect(await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)))).toEqual(ranks.map(() => [3, 3]));
    const received = others[1]?.receive(0, 1); // a connection made only now
    await first.tell({ do: 'send', to: 2, values: [5] });
    expect(await received).toEqual([5]);
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(0);
  });
});
