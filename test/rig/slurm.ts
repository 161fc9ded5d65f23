/**
 * Slurm on a cluster of namespaces: munged and slurmctld on the login node, a slurmd on each host of two sockets, with GPUs that are none (their
 * devices are /dev/null), and, if asked for, accounting. A program with STAND_IN_MIG=1 in its environment sees them as MIG instances, as Slurm
 * names those: by UUID. Ends with the test.
 *
 *     await using cluster = await Cluster.start(2);
 *     await using slurm = await Slurm.start(cluster, { gpus: 4 });
 *     await slurm.run(['salloc', '-N2', '--ntasks-per-node=2', ncclrun, 'hostname']);
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, openSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { clusterUnavailable, findProgram } from './capability.ts';
import { LOGIN_ADDRESS, type Cluster } from './cluster.ts';
import { Command, type Outcome } from './command.ts';
import { accountingSettings, writeAccounting } from './slurm-accounting.ts';
import { until } from './until.ts';

/** Null, or the sentence why there is no Slurm here. */
export function slurmUnavailable(): string | null {
  const missing = ['munged', 'slurmctld', 'slurmd', 'sbatch', 'srun', 'scontrol'].filter(
    (name) => findProgram(name) === null,
  );
  return missing.length > 0 ? `not installed: ${missing.join(', ')}` : clusterUnavailable();
}

const CPUS = 16;
const SOCKETS = 2;
const START_MS = 30_000;
/** What it writes becomes environment of the task. */
const MIG_PROLOG = `#!/bin/sh
[ -n "$STAND_IN_MIG" ] && [ -n "$CUDA_VISIBLE_DEVICES" ] || exit 0
echo "export CUDA_VISIBLE_DEVICES=$(echo "$CUDA_VISIBLE_DEVICES" | sed 's/[0-9][0-9]*/MIG-fake-&/g')"
`;

export interface SlurmOptions {
  /** Of each host. */
  readonly gpus?: number;
  /** The type of each GPU of a host; all are `fake` without it. */
  readonly types?: readonly string[];
  /** What `sacct` asks; see slurm-accounting.ts. */
  readonly accounting?: boolean;
  /** More lines of slurm.conf. */
  readonly settings?: readonly string[];
}

export class Slurm implements AsyncDisposable {
  readonly cluster: Cluster;
  readonly configuration: string;
  readonly #directory: string;
  readonly #daemons: ChildProcess[] = [];
  #controller: ChildProcess | null = null;

  private constructor(cluster: Cluster) {
    this.cluster = cluster;
    this.#directory = join(cluster.state, 'slurm');
    this.configuration = join(this.#directory, 'slurm.conf');
  }

  /** Resolves when every host is idle. */
  static async start(cluster: Cluster, options: SlurmOptions = {}): Promise<Slurm> {
    const { gpus = 0, accounting = false, settings = [], types = Array.from({ length: gpus }, () => 'fake') } = options;
    const slurm = new Slurm(cluster);
    try {
      await slurm.#configure(types, accounting, settings);
      await slurm.#startDaemons(accounting);
      return slurm;
    } catch (error) {
      await slurm[Symbol.asyncDispose]();
      throw error;
    }
  }

  /** The socket of munged. */
  get #munge(): string {
    return join(this.#directory, 'munge/socket');
  }
  get environment(): NodeJS.ProcessEnv {
    return { SLURM_CONF: this.configuration };
  }

  /** A program of the login node, as its users run it. */
  start(argv: readonly [string, ...string[]]): Command {
    const [program, ...rest] = argv;
    const path = findProgram(program) ?? program;
    return Command.start(rest, {
      cluster: this.cluster,
      program: path,
      environment: this.environment,
      directory: '/var/tmp',
    });
  }

  async run(argv: readonly [string, ...string[]]): Promise<Outcome> {
    if (argv[0] === 'salloc') await this.#ended();
    await using command = this.start(argv);
    return await command.outcome;
  }

  /** Resolves when no job is ending: its hosts would be passed over, and tests expect the first ones. */
  async #ended(): Promise<void> {
    const deadline = performance.now() + START_MS;
    for (;;) {
      await using command = this.start(['squeue', '--noheader', '--states=completing']);
      const { stdout } = await command.outcome;
      if (stdout === '') return;
      if (performance.now() > deadline) throw new Error(`jobs do not end: ${stdout}`);
      await delay(20);
    }
  }

  /** A field of `scontrol show job`, such as JobState or ExitCode. */
  async jobField(job: string, field: string): Promise<string> {
    const { stdout } = await this.run(['scontrol', '--oneliner', 'show', 'job', job]);
    return new RegExp(`\\b${field}=(\\S+)`, 'u').exec(stdout)?.[1] ?? '';
  }

  /** Resolves when the job's field has that value. */
  async jobReaches(job: string, field: string, value: string, limitMs = START_MS): Promise<void> {
    const deadline = performance.now() + limitMs;
    for (;;) {
      const now = await this.jobField(job, field);
      if (now === value) return;
      if (performance.now() > deadline) throw new Error(`job ${job}: ${field} is ${now}, not ${value}`);
      await delay(20);
    }
  }

  async #configure(types: readonly string[], accounting: boolean, more: readonly string[]): Promise<void> {
    const directory = this.#directory;
    for (const name of ['state', 'munge', 'dev']) await mkdir(join(directory, name), { recursive: true });
    await chmod(join(directory, 'munge'), 0o711);
    await writeFile(join(directory, 'munge/key'), randomBytes(1024), { mode: 0o400 });
    const devices = types.map((type, gpu) => ({ type, file: join(directory, `dev/gpu${gpu}`) }));
    for (const { file } of devices) await this.cluster.inLogin('mknod', file, 'c', '1', '3');
    const kinds = [...new Set(types)].map((type) => `gpu:${type}:${types.filter((one) => one === type).length}`);
    const hosts = this.cluster.hosts.map(({ name, address }) => {
      const gres = kinds.length > 0 ? ` Gres=${kinds.join(',')}` : '';
      const cores = `CPUs=${CPUS} Sockets=${SOCKETS} CoresPerSocket=${CPUS / SOCKETS} ThreadsPerCore=1`;
      return `NodeName=${name} NodeAddr=${address} ${cores} RealMemory=4000${gres} State=UNKNOWN`;
    });
    const gres = devices.map(({ type, file }) => `Name=gpu Type=${type} File=${file}`);
    await writeFile(join(directory, 'task-prolog'), MIG_PROLOG, { mode: 0o755 });
    await writeFile(join(directory, 'gres.conf'), `${gres.join('\n')}\n`);
    await writeFile(join(directory, 'cgroup.conf'), 'CgroupPlugin=cgroup/v1\nCgroupAutomount=no\n');
    await writeFile(
      this.configuration,
      `${[...this.#settings(), ...accountingSettings(accounting, this.#munge), ...more, ...hosts].join('\n')}\nPartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n`,
    );
  }

  #settings(): string[] {
    const directory = this.#directory;
    return [
      'ClusterName=ncclrun',
      `SlurmctldHost=login(${LOGIN_ADDRESS})`,
      'SlurmUser=root',
      'SlurmdUser=root',
      'AuthType=auth/munge',
      `AuthInfo=socket=${this.#munge}`,
      'CredType=cred/munge',
      `StateSaveLocation=${directory}/state`,
      `SlurmdSpoolDir=${directory}/spool-%n`,
      `SlurmctldPidFile=${directory}/slurmctld.pid`,
      `SlurmdPidFile=${directory}/slurmd.%n.pid`,
      `SlurmctldLogFile=${directory}/slurmctld.log`,
      `SlurmdLogFile=${directory}/slurmd.%n.log`,
      'ProctrackType=proctrack/linuxproc',
      'TaskPlugin=task/none',
      `TaskProlog=${directory}/task-prolog`,
      'JobAcctGatherType=jobacct_gather/none',
      'SelectType=select/cons_tres',
      'SelectTypeParameters=CR_Core',
      'SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0',
      'MpiDefault=none',
      'ReturnToService=2',
      'SlurmdParameters=config_overrides',
      'GresTypes=gpu',
      'KillWait=5',
    ];
  }

  async #startDaemons(accounting: boolean): Promise<void> {
    const { cluster } = this;
    const directory = join(this.#directory, 'munge');
    const files = ['socket', 'key-file', 'pid-file', 'log-file', 'seed-file'].map(
      (name) => `--${name}=${directory}/${name.replace('-file', '')}`,
    );
    this.#daemon('munged', cluster.command([program('munged'), '--foreground', '--force', ...files], '/'));
    if (accounting) await this.#startAccounting();
    this.#controller = this.#startController('-c');
    for (const { name, init } of cluster.hosts) {
      const enter = [
        '--target',
        String(init),
        '--all',
        '--',
        program('slurmd'),
        '-D',
        '-N',
        name,
        '-f',
        this.configuration,
      ];
      this.#daemon(`slurmd-${name}`, ['nsenter', enter]);
    }
    await this.#tells(
      ['sinfo', '--noheader', '--states=idle', '--format=%D'],
      new RegExp(`^\\s*${cluster.hosts.length}\\s*$`, 'u'),
    );
  }

  /** `-c`: without what it knew before. */
  #startController(...options: readonly string[]): ChildProcess {
    const words = [program('slurmctld'), '-D', ...options, '-f', this.configuration];
    return this.#daemon('slurmctld', this.cluster.command(words, '/'));
  }

  /** Nobody answers until `resumeController`. */
  async stopController(): Promise<void> {
    const controller = this.#controller;
    if (controller === null) throw new Error('slurmctld does not run');
    const ended = once(controller, 'exit');
    controller.kill('SIGTERM');
    await ended;
    this.#controller = null;
  }

  /** It knows the jobs that it knew; with `-c` none. */
  resumeController(...options: readonly string[]): void {
    this.#controller = this.#startController(...options);
  }

  /** Resolves when slurmctld answers. */
  async answers(): Promise<void> {
    await this.#tells(['scontrol', 'ping'], /is UP/u);
  }

  async #startAccounting(): Promise<void> {
    const { argv, ready } = await writeAccounting(this.#directory, this.#munge);
    const [name = '', ...options] = argv;
    this.#daemon(name, this.cluster.command([program(name), ...options], '/'));
    await until('MariaDB answers', () => existsSync(ready), START_MS);
    this.#daemon('slurmdbd', this.cluster.command([program('slurmdbd'), '-D'], '/'));
    await this.#tells(['sacctmgr', 'show', 'cluster'], /Cluster/);
  }

  /** Asks again until the answer is as expected. */
  async #tells(argv: readonly [string, ...string[]], expected: RegExp): Promise<void> {
    const deadline = performance.now() + START_MS;
    for (;;) {
      const { stdout, stderr } = await this.run(argv);
      if (expected.test(stdout)) return;
      if (performance.now() > deadline) throw new Error(`Slurm does not start: ${stderr}; see ${this.#directory}`);
      await delay(50);
    }
  }

  #daemon(name: string, [file, argv]: [string, string[]]): ChildProcess {
    const log = openSync(join(this.#directory, `${name}.out`), 'w');
    const env = { ...this.cluster.environment(), ...this.environment };
    const daemon = spawn(file, argv, { stdio: ['ignore', log, log], env });
    this.#daemons.push(daemon);
    return daemon;
  }

  /** Ends the daemons, those of the hosts first. */
  async [Symbol.asyncDispose](): Promise<void> {
    for (const daemon of this.#daemons.toReversed()) {
      if (daemon.exitCode !== null || daemon.signalCode !== null) continue;
      const ended = once(daemon, 'exit');
      daemon.kill('SIGTERM');
      const timeout = setTimeout(() => daemon.kill('SIGKILL'), 5000);
      await ended;
      clearTimeout(timeout);
    }
  }
}

function program(name: string): string {
  return findProgram(name) ?? name;
}
