/** Connections from somebody else to an engine's TCP listener are dropped and the communicator works on. */
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

const HELLO_MAGIC = 0x48434e4e;
const HELLO_VERSION = 3;
const HELLO_BYTES = 64;
/** The rest is padding. */
const HELLO_USED_BYTES = 40;
const PAIR_CHANNEL = 0xffff_ffff;
const WELCOME_BYTES = 48;
const PLAN_BEGIN_BYTES = 256;

/** Ports on which the rank's host listens, sshd's left out. */
function listeningPorts(rank: SteerableRank): number[] {
  const tables = ['tcp', 'tcp6'].map((name) => readFileSync(`/proc/${rank.machinePid}/net/${name}`, 'utf8'));
  const rows = tables.flatMap((table) => table.trim().split('\n').slice(1)).map((row) => row.trim().split(/\s+/));
  const ports = rows.filter((row) => row[3] === LISTENING).map((row) => parseInt(row[1]?.split(':')[1] ?? '', 16));
  return [...new Set(ports)].filter((port) => port !== SSH_PORT);
}

/** What the rank's plan says to those who connect (native/net/socket/hello.h): of the sender that is `from`, on that channel. */
function helloOf(rank: SteerableRank, from: number, channel: number, stepBytesAt: number): Buffer {
  const plan = planOf(rank);
  const hello = Buffer.alloc(HELLO_BYTES);
  hello.writeUInt32LE(HELLO_MAGIC, 0);
  hello.writeUInt16LE(HELLO_VERSION, 4);
  plan.copy(hello, 8, HEADER.token, HEADER.token + 16);
  hello.writeUInt32LE(from, 24);
  hello.writeUInt32LE(rank.rank, 28);
  hello.writeUInt32LE(channel, 32);
  hello.writeUInt32LE(plan.readUInt32LE(stepBytesAt), 36);
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
  it('the listener answers only peers of its plan, and each connection once', async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    await using command = Command.start(['-H', 'h1:2,h2:1', ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(3);
    const [first] = ranks;
    if (first === undefined) throw new Error('no rank 0');
    await Promise.all(ranks.map((rank) => rank.init()));
    const sums = async (): Promise<void> =>
      expect(await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)))).toEqual(ranks.map(() => [3, 3]));
    await sums(); // the ring's connections are made
    const right = helloOf(first, 2, 0, HEADER.ringStepBytes);
    const changed = Array.from({ length: HELLO_USED_BYTES }, (_, at) => {
      const hello = Buffer.from(right);
      hello.writeUInt8(hello.readUInt8(at) ^ 1, at);
      return hello;
    });
    const cut = Array.from({ length: HELLO_BYTES }, (_, length) => right.subarray(0, length));
    expect(await answersTo(cluster, first, right, ...changed, ...cut)).toBe(0);
    await sums();
    for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
    expect((await command.outcome).status).toBe(0);
  });

  it("the listener answers a peer that knows the plan's token when that connection is missing", async () => {
    await using cluster = await Cluster.start(2);
    await using steering = await Steering.open();
    await using _ = Command.start(['-H', 'h1:1,h2:1', ...steering.options, steering.program], { cluster });
    const ranks = await steering.ranks(2);
    const [first] = ranks;
    if (first === undefined) throw new Error('no rank 0');
    await Promise.all(ranks.map((rank) => rank.init()));
    const hello = helloOf(first, 1, PAIR_CHANNEL, HEADER.pairStepBytes);
    expect(await answersTo(cluster, first, hello)).toBe(WELCOME_BYTES);
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
