/** The keys that an ssh-agent lists, and agents that answer nonsense. */
import { mkdtempSync, rmSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { listAgentKeys } from '../../launcher/remote/ssh2/agent-keys.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-agent-keys-'));
afterAll(() => rmSync(directory, { recursive: true }));
let sockets = 0;

/** The answer as an ssh-agent frames it: a number of 4 bytes, then as many bytes. */
function framed(bytes: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(bytes.length);
  return Buffer.concat([length, bytes]);
}

function key(type: string): Buffer {
  return Buffer.concat([framed(Buffer.from(type)), framed(Buffer.from('public'))]);
}

function identities(count: number, keys: readonly Buffer[], comment = 'ann@home'): Buffer {
  const head = Buffer.alloc(5);
  head[0] = 12;
  head.writeUInt32BE(count, 1);
  return Buffer.concat([head, ...keys.flatMap((one) => [framed(one), framed(Buffer.from(comment))])]);
}

/** What is made of an agent that answers with these pieces, and then hangs up if that is wanted. */
async function listed(pieces: readonly Buffer[], hangsUp = false): Promise<string[]> {
  const path = join(directory, `agent-${sockets++}`);
  const requests: Buffer[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', (request) => {
      requests.push(Buffer.from(request));
      for (const piece of pieces) socket.write(piece);
      if (hangsUp) socket.end();
    });
  }).listen(path);
  await once(server, 'listening');
  const keys = await listAgentKeys(path);
  server.close();
  expect(requests).toEqual([Buffer.from([0, 0, 0, 1, 11])]);
  return keys.map(({ type, key: bytes }) => `${type} ${bytes.length}`);
}

describe('the keys of an ssh-agent', () => {
  it('the keys of an ssh-agent have their types', async () => {
    const answer = framed(identities(2, [key('ssh-ed25519'), key('ssh-rsa')]));
    expect(await listed([answer])).toEqual(['ssh-ed25519 25', 'ssh-rsa 21']);
  });

  it('an answer may arrive in pieces of any size', async () => {
    const answer = framed(identities(1, [key('ssh-rsa')]));
    expect(await listed([...answer].map((byte) => Buffer.of(byte)))).toEqual(['ssh-rsa 21']);
  });

  it('the agent says how many keys follow, with or without comments', async () => {
    const both = [key('ssh-rsa'), key('ssh-ed25519')];
    expect(await listed([framed(identities(1, both))])).toEqual(['ssh-rsa 21']);
    expect(await listed([framed(identities(2, both, ''))])).toEqual(['ssh-rsa 21', 'ssh-ed25519 25']);
    expect(await listed([framed(identities(0, []))])).toEqual([]);
  });

  it('the list ends where the answer is cut off or malformed', async () => {
    const whole = identities(2, [key('ssh-rsa'), key('ssh-ed25519')]);
    expect(await listed([framed(whole.subarray(0, -1))])).toEqual(['ssh-rsa 21']);
    expect(await listed([framed(identities(3, [key('ssh-rsa'), Buffer.from('x')]))])).toEqual(['ssh-rsa 21']);
    expect(await listed([framed(Buffer.of(5))])).toEqual([]);
    expect(await listed([framed(Buffer.of(12, 0, 0, 0))])).toEqual([]);
    expect(await listed([framed(Buffer.concat([Buffer.of(13), whole.subarray(1)]))])).toEqual([]);
  });

  it('an agent that hangs up, announces too long an answer or does not exist has no keys', async () => {
    expect(await listed([Buffer.of(0, 0)], true)).toEqual([]);
    expect(await listed([Buffer.of(0, 4, 0, 1)])).toEqual([]);
    expect(await listAgentKeys(join(directory, 'nobody'))).toEqual([]);
  });
});
