/**
 * A cluster on one machine: a login node and hosts h1, h2… made of namespaces (network, UTS, pid, mount, IPC), each host with its own sshd, host
 * key, name, /tmp, /dev/shm and a cable to a switch. All of it ends with the process that made it, whatever happens.
 * Needs root, iproute2, OpenSSH (see capability.ts). Several clusters may exist at once; they do not see each other.
 *
 *     await using cluster = await Cluster.start(4);
 *     await Command.run(['-H', 'h1:1,h2:1', 'hostname'], { cluster });
 *     await cluster.host('h2').cut();
 */
import { execFile, spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, watch } from 'node:fs';
import { rm, writeFile } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import {
  makeStateDirectory,
  type HostAddress,
  type SshClient,
  type SshClientOptions,
  writeClusterFiles,
  writeSshClient,
} from './cluster/files.ts';
import { delayCable } from './cluster/delay.ts';
import { freeze } from './freezer.ts';
import { alive, inPidNamespaceOf, type ProcessEntry } from './processes.ts';
import { until } from './until.ts';

const execFileAsync = promisify(execFile);
const here = dirname(fileURLToPath(import.meta.url));
export const repository = join(here, '../..');

/** The login node's own address. */
export const LOGIN_ADDRESS = '10.77.0.1';

export interface ClusterOptions {
  /** More lines for every sshd_config. */
  readonly sshd?: string;
  /** Each host has a CLOCK_MONOTONIC of its own, as real ones do. */
  readonly ownClocks?: boolean;
}

/** One host; every method that breaks it has its opposite. */
export class ClusterHost {
  readonly name: string;
  readonly address: string;
  #cluster: Cluster;
  #thaw: (() => Promise<void>) | null = null;
  #undelay: (() => Promise<void>) | null = null;

  constructor(cluster: Cluster, host: HostAddress) {
    this.#cluster = cluster;
    this.name = host.name;
    this.address = host.address;
  }

  /** The machine's number for this host's first process. */
  get init(): number {
    return Number(readFileSync(join(this.#cluster.state, this.name, 'init.pid'), 'utf8'));
  }

  /** Everything that lives on this host, its init and listening sshd included. */
  processes(): ProcessEntry[] {
    return inPidNamespaceOf(this.init);
  }

  /** What lives on this host beside its init and its sshd. */
  guests(): ProcessEntry[] {
    return this.processes().filter((entry) => entry.pid !== this.init && !(entry.argv[0] ?? '').includes('sshd'));
  }

  /** Resolves when no guest is left: an agent that is done is not waited for by the launcher, it leaves a moment later. */
  async empty(limitMs = 5000): Promise<void> {
    await until(`nothing left on ${this.name}`, () => this.guests().length === 0, limitMs);
  }

  /** Runs a command in all namespaces of this host; resolves with its stdout, rejects if it fails. */
  async exec(...argv: readonly string[]): Promise<string> {
    return (await execFileAsync('nsenter', ['--target', String(this.init), '--all', '--', ...argv])).stdout;
  }

  /** Nothing is where ncclrun is installed elsewhere. */
  async hideInstallation(): Promise<void> {
    await this.exec('mount', '-t', 'tmpfs', '-o', 'size=1m', 'tmpfs', repository);
  }
  /** `directory` is this host's ~/.cache; hosts given the same one share it. `home`: as sshd finds it, whatever our HOME says. */
  async useCache(directory: string, home = userInfo().homedir): Promise<void> {
    const own = join(home, '.cache');
    await this.exec('mkdir', '-p', own);
    await this.exec('mount', '--bind', directory, own);
  }

  /** The cable is pulled at the switch: silence, no reset. */
  cut(): Promise<void> {
    return this.#cable('down');
  }
  /** Resolves when packets flow again: the kernel raises a port a moment after it was told to, and forgets failed neighbours later still. */
  async uncut(): Promise<void> {
    await this.#cable('up');
    const port = `cable-${this.name}`;
    const script = `until ip link show ${port} | grep -q 'state UP'; do :; done; ip neigh flush all`;
    await this.#cluster.inLogin('sh', '-c', script);
    await this.#inNetwork('ip', 'neigh', 'flush', 'all');
  }
  async #cable(state: 'up' | 'down'): Promise<void> {
    await this.#cluster.inLogin('ip', 'link', 'set', `cable-${this.name}`, state);
  }

  /** A firewall that swallows everything. */
  async drop(): Promise<void> {
    await this.#inNetwork('iptables', '-I', 'INPUT', '-i', 'eth0', '-j', 'DROP');
    await this.#inNetwork('iptables', '-I', 'OUTPUT', '-o', 'eth0', '-j', 'DROP');
  }
  /** A firewall that answers every TCP segment with a reset. */
  async reset(): Promise<void> {
    await this.#inNetwork(
      'iptables',
      '-I',
      'INPUT',
      '-i',
      'eth0',
      '-p',
      'tcp',
      '-j',
      'REJECT',
      '--reject-with',
      'tcp-reset',
    );
  }
  /** No firewall any more. */
  async accept(): Promise<void> {
    await this.#inNetwork('iptables', '-F');
  }

  /** Every packet is lost with this probability, each way; `accept` ends it. */
  async loss(probability: number): Promise<void> {
    const lost = ['-m', 'statistic', '--mode', 'random', '--probability', String(probability), '-j', 'DROP'];
    await this.#inNetwork('iptables', '-I', 'INPUT', '-i', 'eth0', ...lost);
    await this.#inNetwork('iptables', '-I', 'OUTPUT', '-o', 'eth0', ...lost);
  }

  /** What goes over the cable comes so much later, and at random up to `jitterMs` more. */
  async delay(ms: number, jitterMs: number): Promise<void> {
    this.#undelay ??= await delayCable(this.#cluster, this.name, ms, jitterMs);
  }
  async undelay(): Promise<void> {
    await this.#undelay?.();
    this.#undelay = null;
  }

  /** What it has sent over its cable so far. */
  async sentBytes(): Promise<number> {
    const [, fields = ''] = /^\s*eth0:(.*)$/mu.exec(await this.exec('cat', '/proc/net/dev')) ?? [];
    return Number(fields.trim().split(/\s+/u)[8]);
  }

  /** Limits the cable both ways; `rate` as tc says it ("1gbit"). */
  async rate(rate: string): Promise<void> {
    const bucket = ['root', 'tbf', 'rate', rate, 'burst', '256kb', 'latency', '50ms'];
    await this.#inNetwork('tc', 'qdisc', 'replace', 'dev', 'eth0', ...bucket);
    await this.#cluster.inLogin('tc', 'qdisc', 'replace', 'dev', `cable-${this.name}`, ...bucket);
  }
  /** Limits what this host sends to one other, and all else that it sends to `usual`. */
  async rateTo(other: ClusterHost, rate: string, usual: string): Promise<void> {
    const tc = (...words: readonly string[]): Promise<unknown> => this.#inNetwork('tc', ...words);
    await tc('qdisc', 'replace', 'dev', 'eth0', 'root', 'handle', '1:', 'htb', 'default', '10');
    for (const [flow, own] of [
      ['1:10', usual],
      ['1:20', rate],
    ] as const)
      await tc('class', 'add', 'dev', 'eth0', 'parent', '1:', 'classid', flow, 'htb', 'rate', own, 'burst', '256kb');
    const toOther = ['u32', 'match', 'ip', 'dst', other.address, 'flowid', '1:20'];
    await tc('filter', 'add', 'dev', 'eth0', 'parent', '1:', 'protocol', 'ip', ...toOther);
  }
  async unrate(): Promise<void> {
    await this.#inNetwork('tc', 'qdisc', 'delete', 'dev', 'eth0', 'root');
    await this.#cluster.inLogin('tc', 'qdisc', 'delete', 'dev', `cable-${this.name}`, 'root');
  }

  /** A hung host: its kernel still acknowledges, none of its processes runs. */
  async freeze(): Promise<void> {
    this.#thaw ??= await freeze(this.#cluster.state, this.name, this.init);
  }
  async thaw(): Promise<void> {
    await this.#thaw?.();
    this.#thaw = null;
  }

  /** Every process dies; the kernel stays and says so to the peers. */
  async kill(): Promise<void> {
    const { init } = this;
    process.kill(init, 'SIGKILL');
    await until(`${this.name} dead`, () => !alive(init));
  }
  /** Silence, then nothing. */
  async powerloss(): Promise<void> {
    await this.cut();
    await this.kill();
  }
  /** Starts a host that was killed. */
  async boot(): Promise<void> {
    await this.uncut();
    await rm(join(this.#cluster.state, this.name, 'sshd.pid'), { force: true });
    this.#cluster.order(`boot ${this.name}`);
    await this.#cluster.listening(this.name);
  }

  async #inNetwork(...argv: readonly string[]): Promise<void> {
    await this.#cluster.inLogin('nsenter', `--net=${join(this.#cluster.state, this.name, 'net')}`, '--', ...argv);
  }
}

export class Cluster implements AsyncDisposable {
  readonly state: string;
  readonly hosts: readonly ClusterHost[];
  readonly ssh: SshClient;
  #login: ChildProcess;
  #loginPid = 0;

  private constructor(state: string, hosts: readonly HostAddress[], ssh: SshClient, login: ChildProcess) {
    this.state = state;
    this.hosts = hosts.map((host) => new ClusterHost(this, host));
    this.ssh = ssh;
    this.#login = login;
  }

  /** Makes hosts h1…h`count` (at most 200) at 10.77.0.11 and up; resolves when every sshd listens. */
  static async start(count: number, options: ClusterOptions = {}): Promise<Cluster> {
    const state = await makeStateDirectory();
    const hosts = Array.from({ length: count }, (_, index) => ({
      name: `h${index + 1}`,
      address: `10.77.0.${11 + index}`,
    }));
    const ssh = await writeClusterFiles(state, hosts, options.sshd ?? '');
    if (options.ownClocks === true)
      for (const [index, { name }] of hosts.entries())
        await writeFile(join(state, name, 'clock'), String(1000 * (index + 1)));
    const namespaces = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child=KILL'];
    const script = [join(here, 'cluster/login.sh'), state, repository, ...hosts.map((host) => host.name)];
    const login = spawn('unshare', [...namespaces, ...script], { stdio: ['pipe', 'pipe', 'inherit'] });
    const cluster = new Cluster(state, hosts, ssh, login);
    try {
      await ready(login);
      cluster.#loginPid = Number(readFileSync(join(state, 'login.pid'), 'utf8'));
      await Promise.all(hosts.map((host) => cluster.listening(host.name)));
      return cluster;
    } catch (error) {
      await cluster[Symbol.asyncDispose]();
      throw error;
    }
  }

  host(name: string): ClusterHost {
    const found = this.hosts.find((host) => host.name === name);
    if (found === undefined) throw new Error(`no host ${name} in this cluster`);
    return found;
  }

  /** argv of a command so that it runs on the login node, in `directory`. The process keeps the pid that spawn gives. */
  command(argv: readonly string[], directory = repository): [string, string[]] {
    const enter = [
      '--target',
      String(this.#loginPid),
      '--net',
      '--mount',
      '--uts',
      '--',
      'env',
      `--chdir=${directory}`,
    ];
    return ['nsenter', [...enter, ...argv]];
  }

  /** The environment for commands of the login node: an `ssh` that knows the cluster leads the PATH. */
  environment(ssh: SshClient = this.ssh): NodeJS.ProcessEnv {
    return { ...process.env, PATH: `${ssh.bin}:${process.env['PATH'] ?? ''}` };
  }

  /** Another ssh client: other known hosts, identity or options. */
  sshClient(name: string, options: Partial<SshClientOptions>): Promise<SshClient> {
    const usual = { knownHosts: join(this.state, 'known_hosts'), identity: join(this.state, 'id') };
    return writeSshClient(this.state, name, this.hosts, { ...usual, ...options });
  }

  /** Runs a tool on the login node; rejects if it fails. */
  async inLogin(...argv: readonly string[]): Promise<string> {
    const [file, parameters] = this.command(argv, '/');
    return (await execFileAsync(file, parameters, { env: this.environment() })).stdout;
  }

  /** A line for login.sh. */
  order(line: string): void {
    this.#login.stdin?.write(`${line}\n`);
  }

  /** Resolves when the host's sshd has written its pid file, which it does once it listens. */
  async listening(name: string): Promise<void> {
    const directory = join(this.state, name);
    const timeout = new AbortController();
    const timer = setTimeout(
      () => timeout.abort(new Error(`sshd of ${name} does not listen: see ${directory}`)),
      20_000,
    );
    const watcher = watch(directory, { signal: timeout.signal });
    const file = join(directory, 'sshd.pid');
    try {
      // Looked up without an await in between: no change can slip through before the watcher is asked again.
      while (!existsSync(file)) await once(watcher, 'change', { signal: timeout.signal });
    } finally {
      clearTimeout(timer);
      watcher.close();
    }
  }

  /** Ends every process of the cluster and removes its state. */
  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.hosts.flatMap((host) => [host.thaw(), host.undelay()]));
    const ended = this.#login.exitCode !== null || this.#login.signalCode !== null ? null : once(this.#login, 'close');
    this.#login.stdin?.end();
    await ended;
    await rm(this.state, { recursive: true, force: true });
  }
}

/** login.sh says one line when the network is there. */
async function ready(login: ChildProcess): Promise<void> {
  const { stdout } = login;
  if (stdout === null) throw new Error('login.sh has no standard output');
  const said = once(stdout, 'data');
  const ended = once(login, 'exit').then(([code]) => {
    throw new Error(`login.sh ended with ${String(code)}`);
  });
  await Promise.race([said, ended]);
  ended.catch(() => {}); // later it may end as it likes
}
