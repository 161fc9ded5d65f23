// The native part of the build: which kernels, CMake, and a line that tells how far it has come.
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { join } from 'node:path';
import { execa } from 'execa';
import { end } from './end.mjs';
import { hasNotStarted, outputOf, run } from './tool.mjs';

const TOOLS = 'CMake 3.18 or newer, make, and GCC 11 or Clang 14 or newer';
const NEEDED = `install ${TOOLS}`;
const HOW_LATER =
  'ncclrun build --kernels ARCHITECTURES makes them where nvcc is (80: A100, 90: H100 and H200, 100: B200)';
const VARIABLE = 'NCCLRUN_CUDA_ARCHITECTURES';

/** Which kernels to make, as `list`: of CMake, null: those of the last time. `told`: what is left out, as a sentence. `wanted`: as for build.mjs. */
export function kernelsToBuild(root, wanted) {
  return chooseKernels(wanted ?? process.env[VARIABLE], cachedValue(cacheOf(root), VARIABLE));
}

export async function buildNative(root, kernels) {
  forgetMoved(root, cacheOf(root));
  const choice = kernels.list === null ? [] : [`-D${VARIABLE}=${kernels.list}`];
  await run(root, 'cmake', ['-S', 'native', '-B', 'build', '--log-level=WARNING', ...choice], NEEDED, true);
  await compile(root);
}

function cacheOf(root) {
  return join(root, 'build/CMakeCache.txt');
}

/** CMake remembers where the checkout was; one that was moved or copied is built anew. */
function forgetMoved(root, cache) {
  const home = cachedValue(cache, 'CMAKE_HOME_DIRECTORY');
  if (home === null || home === join(root, 'native')) return;
  rmSync(cache);
  rmSync(join(root, 'build/CMakeFiles'), { recursive: true, force: true });
}

function cachedValue(cache, name) {
  if (!existsSync(cache)) return null;
  return new RegExp(`^${name}:[A-Z]+=(.*)$`, 'm').exec(readFileSync(cache, 'utf8'))?.[1] ?? null;
}

/** Kernels take minutes: they are made for whom they were asked for, and for the GPUs of this machine. */
function chooseKernels(wanted, before) {
  if (wanted !== undefined && wanted !== 'native') return { list: listOf(wanted), told: '' };
  if (wanted === undefined && before !== null && before !== '') return { list: null, told: '' };
  const here = capabilitiesHere();
  if (here.length === 0) {
    if (wanted === 'native') end(`there is no GPU here, so say for which ones: ${HOW_LATER}`);
    return {
      list: '',
      told: before === null ? `done, without kernels for GPUs: there is no GPU here; ${HOW_LATER}` : '',
    };
  }
  const nvcc = [outputOf('nvcc', ['--version']), outputOf('/usr/local/cuda/bin/nvcc', ['--version'])].find(
    (text) => text !== null,
  );
  if (nvcc !== undefined) return { list: here.join(';'), told: '' };
  const missing = `there is no nvcc in the PATH or in /usr/local/cuda/bin; with CUDA's toolkit, ncclrun build --kernels makes them`;
  if (wanted === 'native') end(missing);
  return { list: '', told: `done, WITHOUT KERNELS for the GPUs here: ${missing}` };
}

/** "80,90" → "80;90", oldest first: its PTX serves all newer ones. */
function listOf(wanted) {
  const words = wanted === 'none' ? [] : wanted.split(/[;, ]+/).filter((word) => word !== '');
  const wrong = words.find((word) => !/^[1-9]\d{1,2}[af]?$/.test(word));
  if (wrong !== undefined)
    end(`${wrong} is no architecture of GPUs; one is their compute capability without the dot, as 80, 90 or 100`);
  return [...new Set(words)].toSorted((one, other) => Number.parseInt(one, 10) - Number.parseInt(other, 10)).join(';');
}

/** "90" of each kind of GPU in this machine. */
function capabilitiesHere() {
  const listed = outputOf('nvidia-smi', ['--query-gpu=compute_cap', '--format=csv,noheader']) ?? '';
  const found = [...listed.matchAll(/^(\d+)\.(\d)\s*$/gm)].map(([, major, minor]) => `${major}${minor}`);
  return [...new Set(found)].toSorted((one, other) => Number(one) - Number(other));
}

/** Errors are shown; of what goes well, one line that tells how far it is. */
async function compile(root) {
  const parallel = String(availableParallelism());
  const progress = new Progress();
  const argv = ['--build', 'build', '--parallel', parallel, '--', '--no-print-directory', '-s'];
  const ended = await execa('cmake', argv, {
    cwd: root,
    stdin: 'ignore',
    stdout: progress.lines(),
    stderr: 'inherit',
    reject: false,
  });
  progress.end();
  if (hasNotStarted(ended)) end(`cmake: ${ended.originalMessage}; ${NEEDED}`);
  if (ended.failed) end(`the native code was not built, as told above; it needs ${TOOLS}`);
}

class Progress {
  #begun = Date.now();
  #isTerminal = process.stderr.isTTY;
  #shown = false;

  /** Takes the lines of a tool's output, and passes none on. */
  lines() {
    const take = (line) => this.take(line);
    // oxlint-disable-next-line require-yield -- execa wants a generator
    return function* (line) {
      take(line);
    };
  }
  take(line) {
    const percent = Number(/^\[ *(\d+)%\] (?:Build|Compil|Link)/.exec(line)?.[1] ?? Number.NaN);
    if (Number.isNaN(percent)) {
      if (!/^\[|^-- |^Consolidate|^Scanning|^\s*$/.test(line)) this.#print(`${line}\n`);
      return;
    }
    const seconds = (Date.now() - this.#begun) / 1000;
    const left = percent < 5 || seconds < 2 ? '' : `, about ${Math.ceil((seconds / percent) * (100 - percent))} s left`;
    if (this.#isTerminal) this.#print(`\r\x1b[Kncclrun build: native code, ${percent} %${left}`);
    else if (!this.#shown) this.#print('ncclrun build: native code, which takes up to a minute\n');
    this.#shown = true;
  }
  end() {
    if (this.#shown && this.#isTerminal) process.stderr.write('\r\x1b[K');
  }
  #print(text) {
    process.stderr.write(text);
  }
}
