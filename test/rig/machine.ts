/**
 * This machine with NUMA nodes and GPUs that it does not have: a mount namespace in which /sys and /proc say so. The CPUs are the real
 * ones, so that binding to them is real.
 */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';
import { parseCpuList } from '../../worker/topology/system-files.ts';
import { repository } from './cluster.ts';
import { Command, type CommandOptions, type Outcome } from './command.ts';

const hidden = ['/sys/devices/system/node', '/sys/bus/pci/devices', '/proc/driver'];

/** The CPUs that we may use. */
export const cpus = parseCpuList(
  /^Cpus_allowed_list:\s*(\S+)/mu.exec(readFileSync('/proc/self/status', 'utf8'))?.[1] ?? '',
);

/** Null, or the sentence why no such machine can be made here. */
export function machineUnavailable(): string | null {
  if (process.getuid?.() !== 0) return 'mounting over /sys needs root';
  if (cpus.length < 2) return 'needs two CPUs, found one';
  const script = hidden.map((path) => `mount --bind /tmp ${path}`).join(' && ');
  const attempt = spawnSync('unshare', ['--mount', 'sh', '-c', script], { encoding: 'utf8' });
  return attempt.status === 0 ? null : `unshare: ${attempt.stderr.trim() || String(attempt.error)}`;
}

export class FakeMachine implements AsyncDisposable {
  readonly #directory: string;

  private constructor(directory: string) {
    this.#directory = directory;
  }

  /** `nodes`: the CPUs of each NUMA node; `gpus`: the NUMA node of each GPU. */
  static async make(nodes: readonly (readonly number[])[], gpus: readonly number[]): Promise<FakeMachine> {
    const directory = await mkdtemp(join(tmpdir(), 'ncclrun-machine-'));
    const [node = '', pci = '', driver = ''] = hidden.map((path) => join(directory, path));
    await mkdir(pci, { recursive: true });
    await mkdir(driver, { recursive: true });
    for (const [index, list] of nodes.entries()) {
      await mkdir(join(node, `node${index}`), { recursive: true });
      await writeFile(join(node, `node${index}/cpulist`), `${list.join(',')}\n`);
    }
    for (const [index, numa] of gpus.entries()) {
      const address = `0000:${index + 1}b:00.0`;
      await mkdir(join(driver, 'nvidia/gpus', address), { recursive: true });
      // Other machines that tests play lock other GPUs.
      const uuid = `GPU-${index}aaaa-${basename(directory)}`;
      await writeFile(join(driver, 'nvidia/gpus', address, 'information'), `GPU UUID: \t ${uuid}\n`);
      await mkdir(join(pci, address));
      await writeFile(join(pci, address, 'numa_node'), `${numa}\n`);
      await writeFile(join(pci, address, 'local_cpulist'), `${nodes[numa]?.join(',') ?? ''}\n`);
    }
    return new FakeMachine(directory);
  }

  /** Runs ncclrun on it, to its end. */
  async run(argv: readonly string[], options: CommandOptions = {}): Promise<Outcome> {
    await using command = this.start(argv, options);
    return await command.outcome;
  }

  /** `kernelLog` false: it may not be read there. */
  start(argv: readonly string[], options: CommandOptions = {}, kernelLog = true): Command {
    const mounts = hidden.map((path) => `mount --bind ${join(this.#directory, path)} ${path}`);
    if (!kernelLog) mounts.push('mount --bind /dev/null /dev/kmsg');
    const script = `${mounts.join(' && ')} && exec "$@"`;
    const words = [
      '--mount',
      '--propagation=private',
      'sh',
      '-c',
      script,
      'sh',
      join(repository, 'bin/ncclrun'),
      ...argv,
    ];
    const environment = { CUDA_VISIBLE_DEVICES: undefined, ...options.environment }; // which hides GPUs from other tests
    return Command.start(words, { ...options, environment, program: 'unshare' });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.#directory, { recursive: true });
  }
}
