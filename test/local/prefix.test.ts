/** `ncclrun prefix`: C programs are built with what it prints, as with NCCL's own installation. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, readlinkSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { noCompiler } from '../rig/gpu-programs.ts';

let directory = '';
beforeAll(() => {
  directory = mkdtempSync(join(repository, 'build/test-prefix-'));
});
afterAll(() => rmSync(directory, { recursive: true }));

const program = `#include <stdio.h>
#include <nccl.h>
#include <ncclrun.h>
int main(void) {
  ncclUniqueId id;
  int size, rank, version;
  ncclComm_t comm;
  if (ncclGetVersion(&version) || ncclrunGetJob(&id, &size, &rank) || ncclCommInitRank(&comm, size, id, rank)) return 1;
  printf("%d of %d\\n", rank, size);
  return ncclCommDestroy(comm);
}
`;

async function prefix(): Promise<string> {
  const { status, stdout, stderr } = await Command.run(['prefix']);
  expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
  return stdout.trimEnd();
}

describeIf(noCompiler, 'ncclrun prefix', () => {
  it('a program compiles against the prefix and finds the library at run time', async () => {
    const nccl = await prefix();
    writeFileSync(join(directory, 'one.c'), program);
    const argv = [
      '-I',
      `${nccl}/include`,
      'one.c',
      '-L',
      `${nccl}/lib`,
      '-lnccl',
      `-Wl,-rpath,${nccl}/lib`,
      '-o',
      'one',
    ];
    execFileSync('cc', argv, { cwd: directory });
    const { status, stdout } = await Command.run(['-n', '2', '--tag-output=none', join(directory, 'one')]);
    expect(status).toBe(0);
    expect(stdout.trim().split('\n').toSorted()).toEqual(['0 of 2', '1 of 2']);
  });

  it('the prefix links to the library of this installation and keeps its path', async () => {
    const nccl = await prefix();
    expect(await prefix()).toBe(nccl);
    for (const name of ['libnccl.so', 'libnccl.so.2'])
      expect(realpathSync(join(nccl, 'lib', name))).toBe(realpathSync(join(repository, 'build/libnccl.so.2')));
    expect(readlinkSync(join(nccl, 'include/nccl.h'))).toBe(join(repository, 'native/include/nccl.h'));
  });

  it('the prefix contains the command and its manual page', async () => {
    const nccl = await prefix();
    expect(execFileSync(join(nccl, 'bin/ncclrun'), ['version'], { encoding: 'utf8' })).toMatch(/^ncclrun \d/);
    expect(readFileSync(join(nccl, 'share/man/man1/ncclrun.1'), 'utf8')).toMatch(/^\.TH /m);
  });

  it('ncclrun prefix repairs a damaged prefix', async () => {
    const nccl = await prefix();
    rmSync(join(nccl, 'lib/libnccl.so'));
    expect(await prefix()).toBe(nccl);
    expect(realpathSync(join(nccl, 'lib/libnccl.so'))).toBe(realpathSync(join(repository, 'build/libnccl.so.2')));
  });
});
