/** What the files of a login write before a command runs: it would stand before our first frame, and breaks scp and rsync. */
import { userInfo } from 'node:os';
import type { HostReadings } from '../../control/readings.ts';
import { runTool } from './run-tool.ts';

const LIMIT_MS = 3000;
/** bash reads ~/.bashrc for a command of sshd, which it knows by this variable. */
const OF_SSHD = 'SSH_CLIENT=127.0.0.1 1 22';

interface Login {
  readonly shell: string;
  readonly home: string;
}

/** Null: there is no such shell, or it starts no command. */
export async function readLogin(user: Login | null = ownLogin()): Promise<HostReadings['login']> {
  if (user === null || user.shell === '') return null;
  const { shell, home } = user;
  const words = ['-i', `HOME=${home}`, `SHELL=${shell}`, 'PATH=/usr/local/bin:/usr/bin:/bin', OF_SSHD];
  const answer = await runTool('env', [...words, shell, '-c', 'true'], LIMIT_MS);
  if (!('output' in answer)) return null;
  const line = answer.output.split('\n').find((text) => text.trim() !== '') ?? '';
  return { shell, bytes: Buffer.byteLength(answer.output), line: line.replaceAll(/[^\x20-\x7e]/gu, '?').slice(0, 80) };
}

function ownLogin(): Login | null {
  try {
    const { shell, homedir } = userInfo();
    return shell === null ? null : { shell, home: homedir };
  } catch {
    return null; // the user has no entry in the table of users, as in many containers
  }
}
