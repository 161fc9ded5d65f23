/**
 * A guest with real libibverbs and Soft-RoCE: Debian's kernel with rdma_rxe under qemu's emulation, this machine's / as its root,
 * read-only. Its devices rxa (10.8.0.1) and rxb (10.8.0.2) are joined by a cable of the kernel. The booted guest is kept as a
 * snapshot, so that a run starts within seconds.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { findProgram } from '../capability.ts';
import { kernelPackage, type Kernel, prepareKernel } from './kernel.ts';
import { Machine } from './machine.ts';

const directory = process.env['NCCLRUN_SOFT_ROCE_DIR'] ?? '/var/tmp/ncclrun-soft-roce';
const sizes = { processors: 2, memoryMiB: 512 };

/** Null, or the sentence why no guest can run here. */
export function softRoceUnavailable(): string | null {
  if (process.arch !== 'x64') return 'the guest is a machine with x86-64';
  if (process.getuid?.() !== 0) return 'sharing / with the guest needs root';
  const needed = ['qemu-system-x86_64', 'busybox', 'cpio', 'depmod', 'modprobe', 'ip', 'rdma', 'apt-get', 'dpkg-deb'];
  const missing = needed.filter((name) => findProgram(name) === null);
  if (missing.length > 0) return `not installed: ${missing.join(', ')}`;
  if (!existsSync('/etc/libibverbs.d/rxe.driver')) return 'not installed: ibverbs-providers';
  if (!existsSync(join(directory, 'root')) && kernelPackage() === null) return 'no package linux-image-amd64';
  return null;
}

/** Whether Debian's kernel is to be had: where it is not, tests in the guest are optional. */
export const isDebian = existsSync('/etc/os-release') && /^ID=debian$/m.test(readFileSync('/etc/os-release', 'utf8'));

const isCompleted = (message: { readonly event?: string; readonly data?: { readonly status?: string } }) =>
  message.event === 'MIGRATION' && ['completed', 'failed'].includes(message.data?.status ?? '');

async function withLimit<Value>(seconds: number, machine: Machine, lines: string[], work: Promise<Value>) {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => {
      reject(new Error(`the guest is not done after ${seconds} s:\n${lines.slice(-20).join('\n')}`));
    }, seconds * 1000);
  });
  try {
    return await Promise.race([work, late]);
  } catch (error) {
    await machine.kill();
    throw error;
  } finally {
    clearTimeout(timer);
  }
}

async function boot(kernel: Kernel, out: string, snapshot: string): Promise<void> {
  const lines: string[] = [];
  const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
  const machine = await Machine.start({ kernel, out, ...sizes, cable: null, snapshot: null }, (line) => {
    lines.push(line);
    if (line.includes('guest: ready')) onReady();
  });
  await withLimit(180, machine, lines, ready);
  const bad = lines.find((line) => line.startsWith('guest: ') && line !== 'guest: ready');
  machine.command('migrate-set-capabilities', { capabilities: [{ capability: 'events', state: true }] });
  machine.command('migrate-set-parameters', { 'max-bandwidth': 2 ** 34 });
  machine.command('migrate', { uri: `exec:cat >${snapshot}.${process.pid}` });
  const { data } = await withLimit(120, machine, lines, machine.event(isCompleted));
  await machine.kill();
  if (bad !== undefined) throw new Error(`the guest did not come up: ${bad}`);
  if (data?.status !== 'completed') throw new Error('qemu wrote no snapshot');
  renameSync(`${snapshot}.${process.pid}`, snapshot);
}

/** The snapshot, made where there is none of this kernel and qemu yet. The oldest go: other checkouts have their own. */
async function snapshotOf(kernel: Kernel, out: string): Promise<string> {
  const qemu = Math.trunc(statSync(findProgram('qemu-system-x86_64') ?? '').mtimeMs).toString(36);
  const path = join(directory, `snapshot-${kernel.key}-${qemu}`);
  if (existsSync(path)) return path;
  await boot(kernel, out, path);
  const age = (name: string) => statSync(join(directory, name)).mtimeMs;
  const finished = readdirSync(directory).filter((name) => /^snapshot-[-0-9a-z]+$/.test(name));
  for (const old of finished.toSorted((one, other) => age(other) - age(one)).slice(4)) rmSync(join(directory, old));
  return path;
}

export interface GuestResult {
  readonly status: number;
  readonly lines: readonly string[];
}

type Cable = { readonly own: string; readonly other: string } | null;

async function runOne(command: string, out: string, seconds: number, guest: 0 | 1 | 2, cable: Cable) {
  mkdirSync(out, { recursive: true });
  const kernel = prepareKernel(directory);
  const snapshot = await snapshotOf(kernel, out);
  rmSync(join(out, 'status'), { force: true });
  const path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';
  writeFileSync(join(out, 'command.sh'), `export ${path} HOME=/root\nulimit -l unlimited\n${command}\n`);
  const lines: string[] = [];
  const machine = await Machine.start({ kernel, out, ...sizes, cable, snapshot }, (line) => lines.push(line));
  const run = async () => {
    await machine.event(({ event }) => event === 'RESUME');
    machine.write(`${Math.floor(Date.now() / 1000)} ${guest}`); // what the console gets before that is lost
    await machine.ended();
  };
  await withLimit(seconds, machine, lines, run());
  const status = join(out, 'status');
  if (!existsSync(status)) throw new Error(`the guest ended without a status:\n${lines.join('\n')}`);
  const [first, last] = [lines.indexOf('guest: begins'), lines.indexOf('guest: ends')];
  return { status: Number(readFileSync(status, 'utf8')), lines: lines.slice(first + 1, last) };
}

/** Runs a command line of bash in the guest; in /run/out it finds and leaves the files of `out`. */
export function runInGuest(command: string, out: string, seconds = 120): Promise<GuestResult> {
  return runOne(command, out, seconds, 0, null);
}

/** Two guests at once, with a device rxn each (10.9.0.1, 10.9.0.2), and a cable between them; `out` has a directory of each. */
export async function runInTwoGuests(commands: readonly [string, string], out: string, seconds = 120) {
  mkdirSync(out, { recursive: true });
  await snapshotOf(prepareKernel(directory), out); // once, before both want it
  const [first, second] = [join(out, 'cable-1'), join(out, 'cable-2')];
  return await Promise.all([
    runOne(commands[0], join(out, '1'), seconds, 1, { own: first, other: second }),
    runOne(commands[1], join(out, '2'), seconds, 2, { own: second, other: first }),
  ]);
}
