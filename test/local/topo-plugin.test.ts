/** `ncclrun topo` with network plugins: one that serves, one that is not there, and one that ends its process. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { Command } from '../rig/command.ts';
import { noCompiler } from '../rig/gpu-programs.ts';
import { buildNativeTests, nativeTests } from '../rig/native-tests.ts';

const double = join(nativeTests, 'net/libnccl-net-double-v12.so');

function topo(plugin: string, ...words: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  return Command.run(['topo', ...words], { environment: { ...process.env, NCCL_NET_PLUGIN: plugin } });
}

describeIf(noCompiler, 'ncclrun topo and network plugins', () => {
  let directory = '';
  beforeAll(async () => {
    buildNativeTests('net_double_v12');
    directory = await mkdtemp(join(tmpdir(), 'ncclrun-plugin-'));
    const source = join(directory, 'ends.c');
    await writeFile(
      source,
      '#include <signal.h>\n__attribute__((constructor)) static void end(void) { raise(SIGSEGV); }\n',
    );
    execFileSync('cc', ['-shared', '-fPIC', '-o', join(directory, 'ends.so'), source]);
  }, 900_000);
  afterAll(() => rm(directory, { recursive: true }));

  it('the plugin that serves is shown with its devices', async () => {
    const { status, stdout } = await topo(double);
    expect(status).toBe(0);
    expect(stdout).toMatch(/\n\nnetwork plugin Double\ndevice {2}port {2}rate\n\S+ +\d+ {2}\S/u);
  });

  it('a plugin that is passed over is a line, and the next one serves', async () => {
    const { stdout, stderr } = await topo(`/absent.so,${double}`);
    expect(stdout).toContain('network plugin Double');
    expect(stderr).toContain('no network plugin: /absent.so: cannot open shared object file');
  });

  it('a plugin without which jobs end is a line with the remedy', async () => {
    const { status, stdout, stderr } = await topo('/absent.so');
    expect({ status, shown: stdout.includes('network plugin') }).toEqual({ status: 0, shown: false });
    expect(stderr).toMatch(/jobs on several hosts would end: NCCL_NET_PLUGIN=\/absent\.so: .*set it to none/u);
  });

  it('a plugin that ends its process does not end ncclrun', async () => {
    const { status, stdout } = await topo(join(directory, 'ends.so'), '--json');
    const notes = [expect.stringContaining('it ended the process that loaded it by SIGSEGV')];
    expect(status).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({ networkPlugin: null, notes: expect.arrayContaining(notes) });
  });
});
