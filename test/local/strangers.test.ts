/** Bytes from somebody else on the agent's socket are refused and the job goes on. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { setImmediate as turn } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { BOOTSTRAP_PROTOCOL } from '../../control/messages/bootstrap.ts';
import { Command } from '../rig/command.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import { type SteerableRank, Steering } from '../rig/steering.ts';

/** Writes bytes to the socket and waits until the other side has closed, or takes no notice for a while. */
async function disturb(path: string, bytes: Uint8Array, hangUp: boolean): Promise<void> {
  const socket = connect(path);
  socket.on('error', () => {});
  await once(socket, 'connect');
  const closed = new Promise((resolve) => socket.once('close', resolve));
  socket.write(bytes);
  if (hangUp) socket.end();
  socket.resume();
  if (hangUp) await closed;
  else {
    await turn();
    socket.destroy();
  }
}

/** A frame as ours look (control/messages/frame.ts), with any numbers in it. */
function frame(payloadBytes: number, version: number, kind: number, payload: Uint8Array): Buffer {
  const header = Buffer.alloc(16);
  header.writeUInt32LE(payloadBytes, 0);
  header.writeUInt8(version, 4);
  header.writeUInt8(kind, 5);
  return Buffer.concat([header, payload]);
}

/** A string as payloads carry it: u32 length, bytes. */
function text(value: string): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32LE(value.length);
  return Buffer.concat([length, Buffer.from(value)]);
}

async function sumsStillRight(ranks: readonly SteerableRank[]): Promise<void> {
  expect(await Promise.all(ranks.map((rank) => rank.allReduce(1, rank.rank)))).toEqual([
    [2, 1],
    [2, 1],
  ]);
}

it("ranks continue after truncated, oversized, foreign and random frames on the agent's socket", async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
  const ranks = await steering.ranks(2);
  await Promise.all(ranks.map((rank) => rank.init()));
  const path = (await ranks[0]?.environment('NCCLRUN_AGENT')) ?? '';
  const random = seededRandom(20_261_120);
  const noise = (length: number): Uint8Array => randomBytes(length, random);

  const cases = [
    Buffer.from('GET / HTTP/1.1\r\nHost: nobody\r\n\r\n'),
    frame(0xffff_ffff, 1, 0x50, Buffer.alloc(0)),
    frame(100, 1, 0x50, noise(50)), // cut
    frame(4, 99, 0x50, noise(4)), // another version
    frame(4, 1, 0xee, noise(4)), // no such kind
    frame(0, 1, 0x52, Buffer.alloc(0)), // a join before any hello, and empty
    frame(64, 1, 0x50, noise(64)), // a hello of noise
    frame(200, 1, 0x54, noise(200)),
    noise(1 << 20),
  ];
  for (const bytes of cases) {
    await disturb(path, bytes, true);
    await disturb(path, bytes, false);
  }
  for (let round = 0; round < 200; round++) await disturb(path, noise(1 + random(300)), round % 2 === 0);
  await sumsStillRight(ranks);
  for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
  expect(await command.outcome).toMatchObject({ status: 0, stderr: '' });
});

it('the agent refuses a hello of another job and names that job', async () => {
  await using steering = await Steering.open();
  await using command = Command.start(['-n', '2', ...steering.options, steering.program]);
  const ranks = await steering.ranks(2);
  const path = (await ranks[0]?.environment('NCCLRUN_AGENT')) ?? '';
  const numbers = Buffer.alloc(12);
  numbers.writeUInt32LE(BOOTSTRAP_PROTOCOL, 0);
  numbers.writeUInt32LE(process.pid, 4);
  const hello = Buffer.concat([numbers, text('another-job'), text('0.0.0')]);
  const socket = connect(path);
  await once(socket, 'connect');
  socket.write(frame(hello.length, 1, 0x50, hello));
  const [answer]: Buffer[] = await once(socket, 'data');
  expect(answer?.readUInt8(5)).toBe(0x59);
  expect(answer?.toString()).toMatch(/another-job/);
  socket.destroy();
  await Promise.all(ranks.map((rank) => rank.init()));
  await sumsStillRight(ranks);
  for (const rank of ranks) rank.tell({ do: 'exit', code: 0 }).catch(() => {});
  expect((await command.outcome).status).toBe(0);
});
