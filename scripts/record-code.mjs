// Runs jobs so that dist/bundle/*.code holds the compiled code of all that a usual job needs, the launcher's and the agent's. An ssh and an
// sshd that stay on this machine stand in for the remote host's.
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { execa } from 'execa';

/** With -G it describes the sshd below, else it runs the command here. */
const ssh = (settings) => `#!/bin/sh
for word; do
  if [ "$word" = -G ]; then printf '${settings.join('\\n')}\\n'; exit; fi
  command=$word
done
sh -c "$command"
`;
/** What each adds to, and the job. More in main than most starts need would make all of them slower: V8 reads all that is recorded. */
const jobs = [
  ['main', ['-n', '2', '/bin/true']],
  ['main,remote,agent,hosts,foreign', ['--rsh', 'openssh', '-H', 'localhost:1,here:1', '-n', '2', '/bin/true']],
  [
    'agent,commands,report',
    ['perf', 'all_reduce', '--device', 'host', '--rsh', 'openssh', '-H', 'here:2', '-n', '2', '-b', '8', '-e', '8'],
  ],
  ['remote,ssh2', ['--rsh', 'auto', '-H', 'localhost:1,here:1', '-n', '2', '/bin/true']],
];
/** A job of two ranks with such a topology adds to these. */
const ONE_HOST = 'topology,planning';
const names = [...new Set(jobs.flatMap(([recorded]) => recorded.split(','))), ...ONE_HOST.split(',')];
/** Two GPUs with NVLinks. */
const topology = `<system version="1"><cpu numaid="0" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
${[1, 2].map((dev) => `<pci busid="0000:0${dev}:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16"><gpu dev="${dev}" sm="90" rank="${dev}"><nvlink target="0000:0${3 - dev}:00.0" count="18" tclass="0x030200"/></gpu></pci>`).join('\n')}
</cpu></system>
`;
const JOB_TIMEOUT_MS = 20_000;
const AGENT_TIMEOUT_MS = 5000;

/** Where that fails, each start compiles for itself: slower, but no worse. */
export async function recordCode(root) {
  const bundles = join(root, 'dist/bundle');
  const of = join(bundles, 'code-of');
  const key = keyOf(bundles);
  const files = names.map((name) => join(bundles, `${name}.code`));
  if (existsSync(of) && readFileSync(of, 'utf8') === key && files.every((file) => existsSync(file))) return;
  for (const file of [of, ...files]) rmSync(file, { force: true });
  const bin = mkdtempSync(join(tmpdir(), 'ncclrun-record-'));
  const server = await startServer(bin).catch(() => null);
  try {
    writeFileSync(join(bin, 'ssh'), ssh(server?.settings ?? ['hostname here']), { mode: 0o755 });
    const env = { ...process.env, PATH: `${bin}:${process.env.PATH}` };
    for (const [recorded, job] of jobs)
      await run(join(root, 'bin/ncclrun'), job, { ...env, NCCLRUN_RECORD_CODE: recorded });
    const file = join(bin, 'topology.xml');
    writeFileSync(file, topology);
    const onFile = `perf all_reduce --device host -n 2 -b 8 -e 8 -x NCCL_TOPO_FILE=${file}`.split(' ');
    await run(join(root, 'bin/ncclrun'), onFile, { ...env, NCCLRUN_RECORD_CODE: ONE_HOST });
    // The launcher does not wait for an agent whose ranks have ended.
    const deadline = Date.now() + AGENT_TIMEOUT_MS;
    while (!existsSync(join(bundles, 'agent.code')) && Date.now() < deadline) await pause(20);
    if (files.every((name) => existsSync(name))) writeFileSync(of, key);
  } finally {
    server?.close();
    rmSync(bin, { recursive: true, force: true });
  }
}

/** What the code was compiled from, and by which Node. */
function keyOf(bundles) {
  const hash = createHash('sha256').update(process.version);
  for (const name of readdirSync(bundles)
    .filter((file) => file.endsWith('.cjs'))
    .toSorted())
    hash.update(name).update(readFileSync(join(bundles, name)));
  return hash.digest('hex');
}

async function run(program, argv, env) {
  await execa(program, argv, { env, extendEnv: false, stdin: 'ignore', timeout: JOB_TIMEOUT_MS, reject: false });
}

/** An sshd of this process, for our own ssh: it lets everyone in, for so long as the build runs, on the loopback interface only. */
async function startServer(directory) {
  const { default: library } = await import('ssh2');
  const keys = {
    host: makeKey(library),
    user: makeKey(library),
  };
  const identity = join(directory, 'id');
  const knownHosts = join(directory, 'known_hosts');
  writeFileSync(identity, keys.user.private, { mode: 0o600 });
  const allowed = library.utils.parseKey(keys.user.public).getPublicSSH();
  const server = new library.Server({ hostKeys: [keys.host.private] }, (client) => {
    client.on('error', () => {});
    client.on('authentication', (context) => {
      const known = context.method === 'publickey' && context.key.data.equals(allowed);
      if (known) context.accept();
      else context.reject(['publickey']);
    });
    client.on('session', (accept) => {
      accept().on('exec', (acceptExec, _reject, { command }) => {
        void serve(acceptExec(), command, directory);
      });
    });
  });
  await new Promise((resolve, reject) => server.once('error', reject).listen(0, '127.0.0.1', resolve));
  const { port } = server.address();
  writeFileSync(knownHosts, `[127.0.0.1]:${port} ${keys.host.public}\n`);
  const settings = [
    'hostname 127.0.0.1',
    `port ${port}`,
    `user ${userInfo().username}`,
    `identityfile ${identity}`,
    'identityagent none',
    `userknownhostsfile ${knownHosts}`,
  ];
  return { settings, close: () => server.close() };
}

/** Of 200 keys that the package makes, it cannot read one. */
function makeKey(library) {
  for (;;) {
    const pair = library.utils.generateKeyPairSync('ed25519');
    if (!(library.utils.parseKey(pair.private) instanceof Error)) return pair;
  }
}

async function serve(channel, command, directory) {
  const env = { PATH: `${directory}:${process.env.PATH}` };
  const child = execa('sh', ['-c', command], { env, stderr: 'ignore', buffer: false, reject: false });
  channel.pipe(child.stdin).on('error', () => {});
  child.stdout.pipe(channel, { end: false });
  const { exitCode = 1 } = await child;
  channel.exit(exitCode);
  channel.end();
}
