/** A machine's /sys and /proc as a directory: detection reads it in place of the real ones. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, relative } from 'node:path';

/** Thousands of small files: quick where they need no disk. */
const memory = existsSync('/dev/shm') ? '/dev/shm' : tmpdir();

export class FakeSysfs implements Disposable {
  readonly root = mkdtempSync(join(memory, 'ncclrun-sysfs-'));

  write(path: string, content: string): void {
    mkdirSync(dirname(join(this.root, path)), { recursive: true });
    writeFileSync(join(this.root, path), `${content}\n`);
  }

  link(from: string, to: string): void {
    mkdirSync(dirname(join(this.root, from)), { recursive: true });
    symlinkSync(relative(dirname(from), to), join(this.root, from));
  }

  /** `path`: real one of the device, below sys/devices; its last part is its address. Files by name. */
  addPci(path: string, files: Readonly<Record<string, string>>): void {
    mkdirSync(join(this.root, path), { recursive: true });
    for (const [name, content] of Object.entries(files)) writeFileSync(join(this.root, path, name), `${content}\n`);
    this.link(`sys/bus/pci/devices/${basename(path)}`, path);
    this.link(`${path}/subsystem`, 'sys/bus/pci');
  }

  [Symbol.dispose](): void {
    rmSync(this.root, { recursive: true });
  }
}
