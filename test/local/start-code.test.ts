import { execFile } from 'node:child_process';
import { copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';

const run = promisify(execFile);
const directory = mkdtempSync(join(tmpdir(), 'start-code-'));
const start = join(directory, 'main.cjs');
const recorded = join(directory, 'main.code');

copyFileSync(join(import.meta.dirname, '../../scripts/start.cjs'), start);
writeFileSync(
  join(directory, 'main.bundle.cjs'),
  `(function (exports, require, module, __filename, __dirname) {
     const late = () => require('node:path').basename(__filename);
     import('node:os').then((os) => console.log(late(), typeof os.cpus, process.argv[2]));
   })`,
);
afterAll(() => rmSync(directory, { recursive: true }));

async function output(environment: NodeJS.ProcessEnv = {}): Promise<string> {
  const { stdout } = await run(process.execPath, [start, '-n'], { env: { ...process.env, ...environment } });
  return stdout.trim();
}

it('the bundle runs the same without recorded code, with it and with an invalid file', async () => {
  const expected = 'main.bundle.cjs function -n';
  expect(await output()).toBe(expected);
  expect(existsSync(recorded)).toBe(false);
  expect(await output({ NCCLRUN_RECORD_CODE: 'agent,main' })).toBe(expected);
  expect(readFileSync(recorded).length).toBeGreaterThan(100);
  expect(await output()).toBe(expected);
  writeFileSync(recorded, 'not what V8 wrote');
  expect(await output()).toBe(expected);
});

it('the bundle receives the variables that the start kept from Node', async () => {
  writeFileSync(
    join(directory, 'main.bundle.cjs'),
    `(function () {
       const ofOurs = Object.keys(process.env).filter((name) => name.startsWith('NCCLRUN_HELD'));
       console.log(process.env.NODE_OPTIONS, process.env.OPENSSL_CONF === '', process.env.NODE_PATH, ofOurs.length);
     })`,
  );
  const held = {
    NCCLRUN_HELD: ' NODE_OPTIONS OPENSSL_CONF',
    NCCLRUN_HELD_NODE_OPTIONS: '--no-such option',
    NCCLRUN_HELD_OPENSSL_CONF: '',
  };
  expect(await output(held)).toBe('--no-such option true undefined 0');
});
