/** Which keys the user's ssh-agent holds, certificates and hardware keys included (draft-ietf-sshm-ssh-agent, 4.2). */
import { connect } from 'node:net';
import { keyType } from '../known-hosts/entry.ts';

export interface AgentKey {
  readonly type: string;
  /** The public key as it travels. */
  readonly key: Buffer;
}

const REQUEST_IDENTITIES = 11;
const IDENTITIES_ANSWER = 12;
const TIMEOUT_MS = 5000;
/** ssh's own limit for an agent's answer. */
const MAX_ANSWER_BYTES = 256 * 1024;

/** None where no agent answers: the identity files are left. */
export function listAgentKeys(socketPath: string): Promise<readonly AgentKey[]> {
  return new Promise((resolve) => {
    const socket = connect(socketPath);
    let answer = Buffer.alloc(0);
    const finish = (keys: readonly AgentKey[]) => {
      socket.destroy();
      resolve(keys);
    };
    socket.setTimeout(TIMEOUT_MS, () => finish([]));
    socket.on('error', () => finish([]));
    socket.on('close', () => finish([]));
    socket.on('data', (bytes: Buffer) => {
      answer = Buffer.concat([answer, bytes]);
      if (answer.length < 4) return;
      const length = answer.readUInt32BE(0);
      if (length > MAX_ANSWER_BYTES) finish([]);
      else if (answer.length >= 4 + length) finish(parseAnswer(answer.subarray(4, 4 + length)));
    });
    socket.write(Buffer.from([0, 0, 0, 1, REQUEST_IDENTITIES]));
  });
}

function parseAnswer(answer: Buffer): AgentKey[] {
  const keys: AgentKey[] = [];
  if (answer[0] !== IDENTITIES_ANSWER || answer.length < 5) return keys;
  let rest = answer.subarray(5);
  for (let left = answer.readUInt32BE(1); left > 0; left -= 1) {
    const key = takeString(rest);
    const comment = key === null ? null : takeString(rest.subarray(4 + key.length));
    if (key === null || comment === null) break;
    rest = rest.subarray(8 + key.length + comment.length);
    const type = keyType(key);
    if (type !== null) keys.push({ type, key });
  }
  return keys;
}

function takeString(bytes: Buffer): Buffer | null {
  if (bytes.length < 4) return null;
  const length = bytes.readUInt32BE(0);
  return length > bytes.length - 4 ? null : bytes.subarray(4, 4 + length);
}
