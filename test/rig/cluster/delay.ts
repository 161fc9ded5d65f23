/**
 * A slow cable: the host's port leaves the switch, and a program carries what goes over it to another port, late (test/rig/programs/delay.c). Kernels
 * that can do so themselves (netem) are rare in containers.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { compile } from '../compile.ts';
import type { Cluster } from '../cluster.ts';

/** Delays both ways by `ms`, and at random up to `jitterMs` more; what it resolves with makes the cable quick again. */
export async function delayCable(
  cluster: Cluster,
  host: string,
  ms: number,
  jitterMs: number,
): Promise<() => Promise<void>> {
  const program = await compile('test/rig/programs/delay.c', cluster.state);
  const [port, near, far] = [`cable-${host}`, `near-${host}`, `far-${host}`];
  const steps = [
    `ip link add ${near} type veth peer name ${far}`,
    // Who asks for the login node's address is not to be answered here already.
    `ip link set ${port} arp off`,
    `ip link set ${near} arp off`,
    `ip link set ${near} up`,
    `ip link set ${far} master ncbr0 up`,
    `ip link set ${port} nomaster`,
  ];
  await cluster.inLogin('sh', '-ec', steps.join('\n'));
  const [file, words] = cluster.command([program, port, near, String(ms), String(jitterMs)], '/');
  const relay = spawn(file, words, { stdio: ['pipe', 'pipe', 'inherit'] });
  await once(relay.stdout, 'data');
  return async () => {
    await ended(relay);
    await cluster.inLogin(
      'sh',
      '-ec',
      `ip link set ${port} arp on\nip link set ${port} master ncbr0\nip link delete ${near}`,
    );
  };
}

async function ended(relay: ChildProcess): Promise<void> {
  const exit = once(relay, 'exit');
  relay.stdin?.end();
  await exit;
}
