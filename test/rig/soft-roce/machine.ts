/** One run of qemu: its console, line by line, and its monitor. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Kernel } from './kernel.ts';

export interface MachineOptions {
  readonly kernel: Kernel;
  /** The only directory of the host that the guest may write to. */
  readonly out: string;
  readonly processors: number;
  readonly memoryMiB: number;
  /** The cable to another guest; null: it leads nowhere. */
  readonly cable: { readonly own: string; readonly other: string } | null;
  /** A snapshot to start from. */
  readonly snapshot: string | null;
}

const kernelWords = 'console=ttyS0 quiet panic=-1 mitigations=off no_timer_check random.trust_cpu=on clearcpuid=112';

/**
 * Never with KVM, which the machine may have for other guests only. The processor is without fast string operations, which
 * emulation does byte by byte; clearcpuid takes them from the kernel, too.
 */
function argumentsOf(options: MachineOptions, sockets: string): string[] {
  const { kernel, out, processors, memoryMiB, cable, snapshot } = options;
  const argv = ['-nodefaults', '-no-user-config', '-display', 'none', '-no-reboot', '-accel', 'tcg,thread=multi'];
  argv.push('-cpu', 'max,-erms,-fsrm', '-smp', String(processors), '-m', String(memoryMiB));
  argv.push('-kernel', kernel.image, '-initrd', kernel.initramfs, '-append', kernelWords);
  argv.push('-chardev', `socket,id=console,path=${join(sockets, 'console')}`, '-serial', 'chardev:console');
  argv.push('-chardev', `socket,id=monitor,path=${join(sockets, 'monitor')}`, '-mon', 'chardev=monitor,mode=control');
  const share = 'security_model=none,multidevs=remap';
  argv.push('-virtfs', `local,path=/,mount_tag=root,readonly=on,${share}`);
  argv.push('-virtfs', `local,path=${out},mount_tag=out,${share}`);
  const ends = `local.type=unix,local.path=${cable?.own},remote.type=unix,remote.path=${cable?.other}`;
  const wire = cable === null ? 'hubport,hubid=0' : `dgram,${ends}`;
  argv.push('-netdev', `${wire},id=cable`, '-device', 'virtio-net-pci,netdev=cable,romfile=,mac=52:54:00:00:00:01');
  if (snapshot !== null) argv.push('-incoming', `exec:cat ${snapshot}`);
  return argv;
}

interface MonitorMessage {
  readonly event?: string;
  readonly data?: { readonly status?: string };
  readonly error?: { readonly desc: string };
}

export class Machine {
  readonly #qemu: ChildProcess;
  readonly #sockets: string;
  #console: Socket | null = null;
  #monitor: Socket | null = null;
  #complaints = '';
  readonly #waiting: ((message: MonitorMessage) => void)[] = [];
  readonly #events: MonitorMessage[] = [];
  onLine: (line: string) => void = () => undefined;

  private constructor(qemu: ChildProcess, sockets: string) {
    this.#qemu = qemu;
    this.#sockets = sockets;
    qemu.stderr?.on('data', (data: Buffer) => {
      this.#complaints += data.toString();
    });
  }

  /** Resolves when qemu has connected its console and its monitor. */
  static async start(options: MachineOptions, onLine: (line: string) => void): Promise<Machine> {
    const sockets = mkdtempSync(join(tmpdir(), 'soft-roce-'));
    const servers = ['console', 'monitor'].map((name) => createServer().listen(join(sockets, name)));
    await Promise.all(servers.map((server) => once(server, 'listening')));
    const connected = servers.map(async (server): Promise<Socket> => {
      const [socket]: Socket[] = await once(server, 'connection');
      if (socket === undefined) throw new Error('no connection of qemu');
      return socket;
    });
    // It ends with this process.
    const argv = ['--pdeathsig', 'KILL', 'qemu-system-x86_64', ...argumentsOf(options, sockets)];
    const qemu = spawn('setpriv', argv, { stdio: ['ignore', 'ignore', 'pipe'] });
    const machine = new Machine(qemu, sockets);
    machine.onLine = onLine;
    const ended = once(qemu, 'exit').then(() => {
      throw new Error(`qemu ended: ${machine.#complaints}`);
    });
    try {
      const [console, monitor] = await Promise.race([Promise.all(connected), ended]);
      ended.catch(() => undefined);
      if (console === undefined || monitor === undefined) throw new Error('no connection of qemu');
      machine.#take(console, monitor);
    } finally {
      for (const server of servers) server.close();
    }
    return machine;
  }

  #take(console: Socket, monitor: Socket): void {
    this.#console = console;
    this.#monitor = monitor;
    createInterface({ input: console }).on('line', (line) => this.onLine(line.replaceAll('\r', '')));
    createInterface({ input: monitor }).on('line', (line) => {
      const message: MonitorMessage = JSON.parse(line);
      const next = this.#waiting.shift();
      if (next === undefined) this.#events.push(message);
      else next(message);
    });
    for (const socket of [console, monitor]) socket.on('error', () => undefined);
    this.command('qmp_capabilities');
  }

  command(execute: string, argument: object = {}): void {
    this.#monitor?.write(`${JSON.stringify({ execute, arguments: argument })}\n`);
  }

  /** The monitor's next message for which `isWanted` holds. */
  async event(isWanted: (message: MonitorMessage) => boolean): Promise<MonitorMessage> {
    for (;;) {
      const message =
        this.#events.shift() ?? (await new Promise<MonitorMessage>((resolve) => this.#waiting.push(resolve)));
      if (message.error !== undefined) throw new Error(`qemu: ${message.error.desc}`);
      if (isWanted(message)) return message;
    }
  }

  write(line: string): void {
    this.#console?.write(`${line}\n`);
  }

  /** Resolves when it has ended, by itself or because it was killed. */
  async ended(): Promise<void> {
    if (this.#qemu.exitCode === null && this.#qemu.signalCode === null) await once(this.#qemu, 'exit');
    rmSync(this.#sockets, { recursive: true, force: true });
  }

  async kill(): Promise<void> {
    this.#qemu.kill('SIGKILL');
    await this.ended();
  }
}
