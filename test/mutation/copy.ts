/** A private copy of the checkout, in which files change and tests run; the checkout itself stays as it is. */
import { spawn, spawnSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { withEnvironment } from '../rig/processes.ts';

/** Below build/, what no test reads and what takes long to copy. */
const unread = ['CMakeFiles', 'packages', 'release', 'test-cache'];
/** Below node_modules/, what vitest writes. */
const written = ['.vite', '.vite-temp', '.vitest-cache'];

export interface Ended {
  /** Null if the time limit ended the command. */
  readonly status: number | null;
  /** Standard output and standard error. */
  readonly output: string;
}

export class Copy implements Disposable {
  readonly #base = mkdtempSync(join(tmpdir(), 'ncclrun-mutation-'));
  /** The copy's checkout. */
  readonly root = join(this.#base, 'c');
  /** In the environment of everything that runs in the copy. */
  readonly #mark = `NCCLRUN_MUTATION=${this.#base}`;

  constructor(checkout: string) {
    mkdirSync(join(this.#base, 't'));
    for (const file of committedAndNew(checkout)) {
      mkdirSync(dirname(join(this.root, file)), { recursive: true });
      copyFileSync(join(checkout, file), join(this.root, file));
    }
    for (const built of ['dist', 'build']) {
      if (!existsSync(join(checkout, built))) throw new Error(`${built} is missing; build it with: npm run build`);
      const filter = (path: string) => !unread.some((name) => path === join(checkout, 'build', name));
      cpSync(join(checkout, built), join(this.root, built), {
        recursive: true,
        verbatimSymlinks: true,
        preserveTimestamps: true,
        filter,
      });
    }
    cpSync(join(this.root, 'dist'), join(this.#base, 'dist'), { recursive: true, preserveTimestamps: true });
    linkModules(join(checkout, 'node_modules'), join(this.root, 'node_modules'));
  }

  write(file: string, text: string): void {
    writeFileSync(join(this.root, file), text);
  }

  /** Puts back what was built before any mutant. */
  restoreModules(): void {
    rmSync(join(this.root, 'dist'), { recursive: true });
    cpSync(join(this.#base, 'dist'), join(this.root, 'dist'), { recursive: true, preserveTimestamps: true });
  }

  /** Runs Node with these arguments; ends what the command has left behind. */
  async node(argv: readonly string[], limitMs: number, environment: NodeJS.ProcessEnv = {}): Promise<Ended> {
    const env = { ...process.env, ...environment, NCCLRUN_MUTATION: this.#base, TMPDIR: join(this.#base, 't') };
    const child = spawn(process.execPath, argv, { cwd: this.root, env, stdio: ['ignore', 'pipe', 'pipe'] });
    const chunks: Buffer[] = [];
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (bytes: Buffer) => chunks.push(bytes));
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      this.#endProcesses();
    }, limitMs);
    const status = await new Promise<number | null>((resolve, reject) => {
      child.once('error', reject);
      child.once('exit', resolve);
    });
    clearTimeout(timer);
    this.#endProcesses();
    return { status: isLate ? null : (status ?? 1), output: Buffer.concat(chunks).toString('utf8') };
  }

  #endProcesses(): void {
    for (const { pid } of withEnvironment(this.#mark)) {
      try {
        process.kill(pid, 'SIGKILL');
      } catch {
        // The process has ended meanwhile.
      }
    }
  }

  [Symbol.dispose](): void {
    this.#endProcesses();
    rmSync(this.#base, { recursive: true, force: true });
  }
}

function committedAndNew(checkout: string): string[] {
  const listed = spawnSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], { cwd: checkout });
  if (listed.status !== 0) throw new Error(`git ls-files: ${String(listed.stderr)}`);
  const files = listed.stdout.toString('utf8').split('\0');
  return [...new Set(files)].filter((file) => file !== '' && existsSync(join(checkout, file)));
}

/** Hard links, which cost no space; copies on another file system. */
function linkModules(from: string, to: string): void {
  mkdirSync(to);
  const names = readdirSync(from).filter((name) => !written.includes(name));
  const paths = names.map((name) => join(from, name));
  if (spawnSync('cp', ['-al', ...paths, to]).status === 0) return;
  rmSync(to, { recursive: true });
  mkdirSync(to);
  const copied = spawnSync('cp', ['-a', ...paths, to], { encoding: 'utf8' });
  if (copied.status !== 0) throw new Error(`cp -a node_modules: ${copied.stderr}`);
}
