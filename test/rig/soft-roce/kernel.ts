/** The guest's kernel, from Debian's package, and an initramfs with what it needs before it sees the host's files. */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { findProgram } from '../capability.ts';

const here = import.meta.dirname;

/** Modules that are loaded, each after those that it needs. */
const modules = [
  'crc32_generic',
  'crc32-pclmul',
  'rdma_rxe',
  'rdma_ucm',
  'veth',
  'virtio_pci',
  'virtio_net',
  '9pnet_virtio',
  '9p',
  'sch_ingress',
  'cls_matchall',
  'act_gact',
];

export interface Kernel {
  /** Of the kernel and all that it does before it waits for a command. */
  readonly key: string;
  readonly image: string;
  readonly initramfs: string;
}

/** Name of the package with the newest kernel that is no kernel for clouds, which has no rdma_rxe; null where there is none. */
export function kernelPackage(): string | null {
  try {
    const output = execFileSync('apt-cache', ['depends', 'linux-image-amd64'], { encoding: 'utf8', stdio: 'pipe' });
    return /Depends: (linux-image-\S+)/.exec(output)?.[1] ?? null;
  } catch {
    return null;
  }
}

function unpackKernel(name: string, directory: string): void {
  const work = join(directory, `unpacking-${process.pid}`);
  mkdirSync(work, { recursive: true });
  execFileSync('apt-get', ['download', '-qq', name], { cwd: work, stdio: 'pipe' });
  const archive = readdirSync(work).find((file) => file.endsWith('.deb'));
  if (archive === undefined) throw new Error(`apt-get download ${name} brought no package`);
  execFileSync('dpkg-deb', ['--extract', join(work, archive), join(work, 'root')]);
  rmSync(join(work, archive));
  const [version = ''] = readdirSync(join(work, 'root/lib/modules'));
  execFileSync(findProgram('depmod') ?? 'depmod', ['--basedir', join(work, 'root'), version]);
  // Another process may have been quicker.
  if (!existsSync(join(directory, 'root'))) renameSync(join(work, 'root'), join(directory, 'root'));
  rmSync(work, { recursive: true });
}

/** A program of this machine, with the shared objects that it needs, under `root`/tools. */
function addTool(name: string, root: string): void {
  const program = findProgram(name);
  if (program === null) throw new Error(`no program ${name}`);
  const tools = join(root, 'tools/bin');
  mkdirSync(tools, { recursive: true });
  copyFileSync(program, join(tools, name));
  const needed = execFileSync('ldd', [program], { encoding: 'utf8' });
  for (const [path] of needed.matchAll(/\/\S+/g)) {
    mkdirSync(join(root, dirname(path)), { recursive: true });
    copyFileSync(path, join(root, path));
  }
}

function makeInitramfs(kernel: string, directory: string, key: string): string {
  const output = join(directory, `initramfs-${key}`);
  if (existsSync(output)) return output;
  const root = join(directory, `initramfs-${process.pid}.files`);
  for (const name of ['bin', 'proc', 'sys', 'dev', 'host', 'modules']) mkdirSync(join(root, name), { recursive: true });
  const busybox = findProgram('busybox');
  if (busybox === null) throw new Error('no program busybox');
  copyFileSync(busybox, join(root, 'bin/busybox'));
  const [version = ''] = readdirSync(join(kernel, 'lib/modules'));
  const order = new Set<string>();
  for (const module of modules) {
    const argv = ['--dirname', kernel, '--set-version', version, '--show-depends', module];
    const shown = execFileSync(findProgram('modprobe') ?? 'modprobe', argv, { encoding: 'utf8', stdio: 'pipe' });
    for (const [, path = ''] of shown.matchAll(/^insmod (\S+)/gm)) {
      copyFileSync(path, join(root, 'modules', basename(path)));
      order.add(basename(path));
    }
  }
  writeFileSync(join(root, 'modules/order'), [...order, ''].join('\n'));
  for (const tool of ['ip', 'rdma']) addTool(tool, root);
  copyFileSync(join(here, 'links.sh'), join(root, 'links.sh'));
  copyFileSync(join(here, 'init.sh'), join(root, 'init'));
  chmodSync(join(root, 'init'), 0o755);
  execFileSync('sh', ['-c', 'find . | cpio --create --format=newc --quiet >"$0"', `${output}.${process.pid}`], {
    cwd: root,
  });
  renameSync(`${output}.${process.pid}`, output);
  rmSync(root, { recursive: true });
  return output;
}

/** Makes what is missing in `directory`: the kernel takes a download of 90 MB, once. */
export function prepareKernel(directory: string): Kernel {
  mkdirSync(directory, { recursive: true });
  const name = kernelPackage();
  const root = join(directory, 'root');
  if (!existsSync(root)) {
    if (name === null) throw new Error('no package linux-image-amd64');
    unpackKernel(name, directory);
  }
  const image = readdirSync(join(root, 'boot')).find((file) => file.startsWith('vmlinuz-'));
  if (image === undefined) throw new Error(`no kernel in ${root}/boot`);
  const digest = createHash('sha256').update(image);
  for (const file of ['init.sh', 'links.sh', 'kernel.ts', 'machine.ts']) digest.update(readFileSync(join(here, file)));
  const key = digest.digest('hex').slice(0, 16);
  return { key, image: join(root, 'boot', image), initramfs: makeInitramfs(root, directory, key) };
}
