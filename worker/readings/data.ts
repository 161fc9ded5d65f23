/** How fast this host reads what --data names: past the cache of files where the file system lets us, so that hosts are comparable. */
import type { HostReadings } from '../../control/readings.ts';
import { runTool } from './run-tool.ts';

type DataReading = NonNullable<HostReadings['data']>;

const WANTED_BYTES = 256 * 2 ** 20;
const BLOCK_BYTES = 2 ** 20;
const MAX_FILES = 512;
const FIND_MS = 5000;
const READ_MS = 10_000;

/** A file, or the first files below a directory. */
export async function readData(path: string): Promise<DataReading> {
  const list = `find -L "$1" -type f -size +0 -printf '%s %p\\n' 2>/dev/null | head -n ${MAX_FILES}`;
  const found = await runTool('sh', ['-c', list, 'sh', path], FIND_MS);
  if ('problem' in found) return failed(path, found.problem.replace(/^sh /u, 'the search for files '));
  const files = found.output.split('\n').flatMap((line) => {
    const [, size, file] = /^(\d+) (.+)$/u.exec(line) ?? [];
    return file === undefined ? [] : [{ file, size: Number(size) }];
  });
  if (files.length === 0) return failed(path, 'there is no file that can be read');
  return await timed(path, files);
}

async function timed(path: string, files: readonly { file: string; size: number }[]): Promise<DataReading> {
  const started = performance.now();
  let bytes = 0;
  for (const { file, size } of files) {
    const left = READ_MS - (performance.now() - started);
    if (bytes >= WANTED_BYTES || left <= 0) break;
    const wanted = Math.min(size, WANTED_BYTES - bytes);
    const problem = await problemOfReading(file, wanted, left);
    if (problem !== null) return { path, bytes, seconds: (performance.now() - started) / 1000, problem };
    bytes += wanted;
  }
  return { path, bytes, seconds: (performance.now() - started) / 1000, problem: null };
}

/** A child reads: one that waits for a file server can be left behind. */
async function problemOfReading(file: string, bytes: number, limitMs: number): Promise<string | null> {
  const words = [`if=${file}`, 'of=/dev/null', `bs=${BLOCK_BYTES}`, `count=${Math.ceil(bytes / BLOCK_BYTES)}`];
  const direct = await runTool('dd', [...words, 'iflag=direct'], limitMs);
  if ('output' in direct) return null;
  // Not every file system reads past the cache; one that does not answer is not asked twice.
  if (direct.problem.includes('has not ended')) return direct.problem;
  const usual = await runTool('dd', words, limitMs);
  return 'problem' in usual ? usual.problem : null;
}

function failed(path: string, problem: string): DataReading {
  return { path, bytes: 0, seconds: 0, problem };
}
