/** The C programs that contestants start, compiled once per run into a directory of their own. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { findProgram } from '../test/rig/capability.ts';
import { repository } from '../test/rig/cluster.ts';
import { compile, compileWithEngine } from '../test/rig/compile.ts';
import { buildNativeTests, nativeTests } from '../test/rig/native-tests.ts';

const execFileAsync = promisify(execFile);

/** A message-passing launcher with the compiler for its library. */
export interface Peer {
  readonly name: 'openmpi' | 'mpich';
  readonly compiler: string;
  /** Command line up to the program for `ranks` on this machine, or `perHost` ranks on each of `hosts`. */
  readonly launch: (ranks: number, hosts: readonly string[], perHost: number) => string[];
  readonly environment: NodeJS.ProcessEnv;
  /**
   * Beside `environment`, for more ranks than cores: so that a rank which has nothing to do offers its core. Null: it has no such setting,
   * and every step takes a turn of the scheduler.
   */
  readonly yielding: NodeJS.ProcessEnv | null;
}

const openmpi: Peer = {
  name: 'openmpi',
  compiler: 'mpicc.openmpi',
  launch: (ranks, hosts, perHost) => {
    const local = ['mpirun.openmpi', '--oversubscribe', '--bind-to', 'none', '-n', String(ranks)];
    if (hosts.length === 0) return local;
    // Else it tries every interface it finds, those without a way to the others too.
    const network = ['btl_tcp_if_include', 'oob_tcp_if_include'].flatMap((name) => ['--mca', name, '10.77.0.0/24']);
    return [...local, '-H', hosts.map((host) => `${host}:${perHost}`).join(','), ...network];
  },
  // It refuses to run as root without both.
  environment: { OMPI_ALLOW_RUN_AS_ROOT: '1', OMPI_ALLOW_RUN_AS_ROOT_CONFIRM: '1' },
  yielding: { OMPI_MCA_mpi_yield_when_idle: '1' },
};

const mpich: Peer = {
  name: 'mpich',
  compiler: 'mpicc.mpich',
  launch: (ranks, hosts, perHost) => {
    const local = ['mpiexec.hydra', '-n', String(ranks)];
    return hosts.length === 0 ? local : [...local, '-hosts', hosts.join(','), '-ppn', String(perHost)];
  },
  environment: {},
  // Not even with MPIR_CVAR_POLLS_BEFORE_YIELD=1: an all-reduce of 16 B of 4 ranks on 2 cores takes 9 to 12 ms (MPICH 4.0.2).
  yielding: null,
};

export class Programs implements AsyncDisposable {
  readonly directory: string;
  /** Peers that are installed. */
  readonly peers: readonly Peer[];
  #compiled = new Map<string, Promise<string>>();

  private constructor(directory: string, peers: readonly Peer[]) {
    this.directory = directory;
    this.peers = peers;
  }

  /** Under /var/tmp: hosts of a cluster have a /tmp of their own. */
  static async open(): Promise<Programs> {
    const peers = [openmpi, mpich].filter((peer) => findProgram(peer.launch(1, [], 1)[0] ?? '') !== null);
    return new Programs(await mkdtemp('/var/tmp/ncclrun-bench-'), peers);
  }

  /** A program of bench/programs that needs no library. */
  plain(name: string): Promise<string> {
    return this.#once(name, () => compile(`bench/programs/${name}.c`, this.directory));
  }

  /** A program of bench/programs, built for a peer. */
  forPeer(peer: Peer, name: string): Promise<string> {
    const output = join(this.directory, `${name}.${peer.name}`);
    return this.#once(output, async () => {
      const source = join(repository, `bench/programs/${name}.c`);
      await execFileAsync(peer.compiler, ['-O2', '-o', output, source]);
      return output;
    });
  }

  /** Our C program that joins the communicator of all ranks, passes a barrier and ends. */
  initBarrier(): Promise<string> {
    return this.#once('init_barrier', () => compileWithEngine('native/test/init_barrier.c', this.directory));
  }

  /** A program of bench/programs that uses our library. */
  withEngine(name: string): Promise<string> {
    return this.#once(`${name}.ours`, () => compileWithEngine(`bench/programs/${name}.c`, this.directory));
  }

  /** A program of bench/programs that the native build makes: net_transfers, raw_verbs. */
  ofNativeBuild(name: string): Promise<string> {
    return this.#once(`${name}.native`, () => {
      buildNativeTests(name);
      return Promise.resolve(join(nativeTests, name));
    });
  }

  /** A program of test/rig/programs. */
  ofTests(name: string): Promise<string> {
    return this.#once(`${name}.test`, () => compileWithEngine(`test/rig/programs/${name}.c`, this.directory));
  }

  #once(name: string, make: () => Promise<string>): Promise<string> {
    const made = this.#compiled.get(name) ?? make();
    this.#compiled.set(name, made);
    return made;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.directory, { recursive: true, force: true });
  }
}
