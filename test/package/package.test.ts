/** What npm would publish, installed into an empty project elsewhere, works there. */
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { describeIf } from '../rig/capability.ts';
import { repository } from '../rig/cluster.ts';

const directory = mkdtempSync(join(tmpdir(), 'ncclrun-package-'));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Packs what is built and installs it; the sentence why that is not possible here, or null. */
function install(): string | null {
  execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', directory], { cwd: repository });
  const [tarball] = readdirSync(directory);
  writeFileSync(join(directory, 'package.json'), JSON.stringify({ name: 'elsewhere', private: true, type: 'module' }));
  const options = ['--prefer-offline', '--no-audit', '--no-fund', '--loglevel=error', '--fetch-retries=0'];
  const npm = spawnSync('npm', ['install', ...options, `./${tarball ?? ''}`], { cwd: directory, encoding: 'utf8' });
  return npm.status === 0 ? null : `npm install of the packed package: ${npm.stderr.trim().slice(0, 500)}`;
}

const run = (file: string, argv: readonly string[]) => spawnSync(file, argv, { cwd: directory, encoding: 'utf8' });
const program = `
import { init } from 'ncclrun';
await using communicator = await init();
const [sum] = await communicator.allReduce(Float32Array.of(communicator.rank + 1));
console.log('sum', sum);
`;

describeIf(install(), 'the package', () => {
  it('the package contains the command, types and native code but no sources of ours', () => {
    const files = readdirSync(join(directory, 'node_modules/ncclrun'), { recursive: true, encoding: 'utf8' });
    expect(files).toEqual(
      expect.arrayContaining(['bin/ncclrun', 'dist/worker/index.d.ts', 'build/ncclrun-guardian', 'build/libnccl.so.2']),
    );
    expect(files.filter((name) => /^(test|bench|launcher|worker|control)\//.test(name))).toEqual([]);
  });

  it('the package contains every file that its README links to', () => {
    const root = join(directory, 'node_modules/ncclrun');
    const links = [...readFileSync(join(root, 'README.md'), 'utf8').matchAll(/\]\(([\w/.-]+)\)/g)].map(
      ([, to]) => to ?? '',
    );
    expect(links).not.toEqual([]);
    expect(links.filter((link) => !existsSync(join(root, link)))).toEqual([]);
  });

  it('npx runs the command of the package', () => {
    const { status, stderr } = run('npx', ['ncclrun', '-n', '4', '/bin/true']);
    expect({ status, stderr: stderr.replaceAll(/^npm .*\n/gm, '') }).toEqual({ status: 0, stderr: '' });
  });

  it('the package contains the manual page', () => {
    const page = readFileSync(join(directory, 'node_modules/ncclrun/dist/man/ncclrun.1'), 'utf8');
    expect(run('node_modules/.bin/ncclrun', ['man'])).toMatchObject({ status: 0, stdout: page, stderr: '' });
  });

  it('a program can import the package', () => {
    writeFileSync(join(directory, 'program.ts'), program);
    const { status, stdout } = run('node_modules/.bin/ncclrun', ['-n', '3', 'program.ts']);
    expect(status).toBe(0);
    expect(stdout.trim().split('\n').toSorted()).toEqual(['[0] sum 6', '[1] sum 6', '[2] sum 6']);
  });

  it('TypeScript accepts the declarations of the package', () => {
    const settings = {
      compilerOptions: {
        module: 'nodenext',
        target: 'es2023',
        lib: ['es2024', 'esnext.disposable'],
        strict: true,
        noEmit: true,
        types: [],
      },
      files: ['program.ts'],
    };
    writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify(settings));
    writeFileSync(
      join(directory, 'program.ts'),
      program.replace("console.log('sum', sum);", 'export const total: number | undefined = sum;'),
    );
    const { status, stdout } = run(join(repository, 'node_modules/.bin/tsc'), ['-p', '.']);
    expect({ status, stdout }).toEqual({ status: 0, stdout: '' });
  });
});
