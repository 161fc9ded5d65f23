/** Signals, statuses and stdin where ranks run on other hosts: as on one's own. */
import { createHash } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LEASE_MS } from '../../launcher/job/order.ts';
import { clusterUnavailable, describeIf } from '../rig/capability.ts';
import { Cluster, repository } from '../rig/cluster.ts';
import { Command } from '../rig/command.ts';
import { processEntry } from '../rig/processes.ts';
import { randomBytes, seededRandom } from '../rig/random.ts';
import { parseResult } from '../rig/result.ts';
import { Steering } from '../rig/steering.ts';
import { Terminal, terminalUnavailable } from '../rig/terminal.ts';
import { until } from '../rig/until.ts';
import { sample } from '../rig/whole.ts';

const ncclrun = `${repository}/bin/ncclrun`;
const shells = ['ssh2', 'openssh'] as const;
const hosts = (shell: string): string[] => ['--rsh', shell, '-H', 'h1:1,h2:1'];

describeIf(clusterUnavailable() ?? terminalUnavailable(), 'signals, exit statuses and stdin of remote ranks', () => {
  let cluster: Cluster;
  beforeAll(async () => {
    cluster = await Cluster.start(2);
  });
  afterAll(() => cluster[Symbol.asyncDispose]());

  const empty = async (): Promise<void> => {
    for (const host of cluster.hosts) await host.empty(5000);
  };

  describe('exit statuses', () => {
    it.each([
      [0, 'ok', 'exit 0'],
      [1, 'rank-exit', 'exit 1'],
      [255, 'rank-exit', 'if [ $RANK = 1 ]; then exit 255; fi; sleep 1000'],
      [124, 'rank-exit', 'if [ $RANK = 0 ]; then exit 124; fi; sleep 1000'],
      [139, 'rank-signal', 'if [ $RANK = 1 ]; then kill -SEGV $$; fi; sleep 1000'],
    ])('the launcher exits with %i and reports %s', async (status, reason, script) => {
      const result = await Command.result([...hosts('ssh2'), 'sh', '-c', script], { cluster });
      expect({ status: result.outcome.status, reason: result.reason }).toEqual({ status, reason });
      expect(result.outcome.stderr).not.toContain('Killed');
      await empty();
    });

    it.each([
      [126, ['/etc/passwd']],
      [127, ['/no/such/program']],
      [124, ['--timeout', '0.5', 'sleep', '1000']],
      [2, ['-n', '3', 'true']],
    ])('the launcher exits with %i when the job cannot run to its end', async (status, argv) => {
      expect((await Command.run([...hosts('ssh2'), ...argv], { cluster })).status).toBe(status);
      await empty();
    });

    it.each(shells)('the launcher exits with 125 if the connection breaks (%s)', async (shell) => {
      await using steering = await Steering.open();
      const argv = ['--json', ...hosts(shell), ...steering.options, steering.program];
      await using command = Command.start(argv, { cluster });
      await steering.ranks(2);
      for (const {
        pid,
        argv: [name = ''],
      } of cluster.host('h2').processes())
        if (name.startsWith('sshd: ') && !name.includes('listener')) process.kill(pid, 'SIGKILL');
      const { status, stdout } = await command.outcome;
      expect(status).toBe(125);
      expect(parseResult(stdout)).toMatchObject({ reason: 'host-lost', failures: [{ host: 'h2' }] });
      await empty();
    });
  });

  describe('--spawn-timeout', () => {
    it('--spawn-timeout names the late host and its phase', async () => {
      await cluster.host('h2').freeze();
      try {
        const argv = ['--spawn-timeout', '4', ...hosts('ssh2'), 'true'];
        const { outcome, reason, failures } = await Command.result(argv, { cluster });
        expect({ status: outcome.status, reason }).toEqual({ status: 124, reason: 'spawn-timeout' });
        expect(failures[0]).toMatchObject({ seconds: 4, late: [expect.stringMatching(/^h2 \(/)] });
        expect(outcome.stderr).toMatch(/the ranks had not all started within 4 s, and the job was ended; late: h2 \(/);
      } finally {
        await cluster.host('h2').thaw();
      }
      await empty();
    });

    it('--spawn-timeout has no effect once the ranks run', async () => {
      await using steering = await Steering.open();
      const argv = ['--spawn-timeout', '5', ...hosts('ssh2'), ...steering.options, steering.program];
      await using command = Command.start(argv, { cluster });
      const ranks = await steering.ranks(2);
      await delay(5200); // it has passed
      await Promise.all(ranks.map((rank) => rank.exit(0)));
      expect((await command.outcome).status).toBe(0);
    });
  });

  describe.each(sample(shells, 2))('signals over %s', (shell) => {
    it('SIGUSR1 reaches every rank', async () => {
      await using steering = await Steering.open();
      await using command = Command.start([...hosts(shell), ...steering.options, steering.program], { cluster });
      const ranks = await steering.ranks(2);
      const arrived = Promise.all(ranks.map((rank) => rank.tell({ do: 'awaitSignal', signal: 'SIGUSR1' })));
      for (const rank of [0, 1]) await command.line('stderr', new RegExp(`^\\[${rank}\\].*rank waits for SIGUSR1`));
      command.signal('SIGUSR1');
      expect(await arrived).toEqual(['SIGUSR1', 'SIGUSR1']);
      await Promise.all(ranks.map((rank) => rank.exit(0)));
      expect((await command.outcome).status).toBe(0);
    });

    it('^Z suspends all ranks for longer than a lease, and SIGCONT resumes them', async () => {
      await using steering = await Steering.open();
      await using command = Command.start([...hosts(shell), ...steering.options, steering.program], { cluster });
      const ranks = await steering.ranks(2);
      const pids = [command.pid, ...ranks.map((rank) => rank.machinePid)];
      command.signal('SIGTSTP');
      await until('all stopped', () => pids.every((pid) => processEntry(pid)?.state === 'T'));
      await delay(1.5 * LEASE_MS); // a lease that is not suspended runs out
      expect(pids.map((pid) => processEntry(pid)?.state)).toEqual(['T', 'T', 'T']);
      command.signal('SIGCONT');
      expect(await Promise.all(ranks.map((rank) => rank.environment('RANK')))).toEqual(['0', '1']);
      await Promise.all(ranks.map((rank) => rank.exit(0)));
      expect((await command.outcome).status).toBe(0);
    });

    it('^C at the terminal reaches the ranks but not the ssh connections', async () => {
      await using terminal = await Terminal.open({ cluster });
      const script = 'trap "echo goodbye $RANK; exit 0" INT; echo up; while :; do sleep 0.01; done';
      terminal.type(`${ncclrun} ${hosts(shell).join(' ')} sh -c '${script}'\n`);
      for (const _ of [0, 1]) await terminal.shows('] up');
      terminal.type('\x03');
      for (const _ of [0, 1]) await terminal.shows('] goodbye');
      await terminal.shows('ready> ');
      terminal.type('echo status $?\n');
      await terminal.shows('status 130');
      await empty();
    });

    it('the launcher exits at the third ^C, and the hosts end the remaining ranks', async () => {
      await using steering = await Steering.open();
      const argv = ['--grace', '1000', ...hosts(shell), ...steering.options, steering.program];
      await using command = Command.start(argv, { cluster });
      const ranks = await steering.ranks(2);
      await Promise.all(ranks.map((rank) => rank.tell({ do: 'ignore', signals: ['SIGINT', 'SIGTERM'] })));
      for (const words of [/interrupted/, /got SIGTERM/, /left at once/]) {
        command.signal('SIGINT');
        await command.line('stderr', words);
      }
      expect((await command.outcome).status).toBe(130);
      await empty();
    });

    it('a closed terminal leaves no process on any host', async () => {
      await using steering = await Steering.open();
      await using terminal = await Terminal.open({ cluster });
      terminal.type(`${ncclrun} ${hosts(shell).join(' ')} ${steering.options.join(' ')} ${steering.program}\n`);
      const ranks = await steering.ranks(2);
      await Promise.all(ranks.map((rank) => rank.spawn('setsid')));
      terminal.close();
      await empty();
    });

    it('a closed stdout pipe ends the job silently with 141', async () => {
      const script = `${ncclrun} ${hosts(shell).join(' ')} yes | head -1; echo "\${PIPESTATUS[0]}"`;
      const { stdout, stderr } = await Command.run(['-c', script], { cluster, program: 'bash' });
      expect(stdout).toMatch(/^\[[01]\] y\n141\n$/);
      expect(stderr).toBe('');
      await empty();
    });

    it('--stdin all sends the whole input to the ranks of every host', async () => {
      const bytes = randomBytes(4 * 1024 * 1024, seededRandom(2));
      const options = ['--rsh', shell, '-H', 'h1:2,h2:2', '--tag-output=none', '--stdin', 'all'];
      const script = 'if [ $RANK = 1 ]; then head -c 9 >&2; else md5sum; fi';
      await using command = Command.start([...options, 'sh', '-c', script], { cluster, stdin: 'pipe' });
      command.process.stdin?.end(bytes);
      const sum = createHash('md5').update(bytes).digest('hex');
      expect(await command.outcome).toMatchObject({ status: 0, stdout: `${sum}  -\n`.repeat(3) });
    });
  });
});
