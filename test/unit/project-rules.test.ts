/** What a project's settings file may set: every option's rule, and what each rule refuses. */
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { ownUser } from '../../control/own-user.ts';
import { isSetting } from '../../launcher/model/option.ts';
import { perfCommandLine, runCommandLine, tuneCommandLine } from '../../launcher/cli/options.ts';
import { whyNotInProject } from '../../launcher/cli/project-rules.ts';
import { layerOfJson } from '../../launcher/cli/settings-file.ts';

const directory = realpathSync(mkdtempSync(join(tmpdir(), 'ncclrun-project-')));
const elsewhere = realpathSync(mkdtempSync(join(tmpdir(), 'ncclrun-elsewhere-')));
afterAll(() => {
  rmSync(directory, { recursive: true });
  rmSync(elsewhere, { recursive: true });
});
mkdirSync(join(directory, 'logs'));
writeFileSync(join(directory, 'hosts'), 'localhost\n');
writeFileSync(join(directory, 'anybodys'), 'localhost\n');
chmodSync(join(directory, 'anybodys'), 0o666);
symlinkSync(elsewhere, join(directory, 'away'));
symlinkSync('logs', join(directory, 'within'));
symlinkSync('/nowhere/at/all', join(directory, 'rank.3'));

const project = { directory, uid: ownUser() };
const options = [...runCommandLine.options, ...perfCommandLine.options, ...tuneCommandLine.options];

function why(name: string, value: string): string | null {
  const option = options.filter(isSetting).find((candidate) => candidate.name === name);
  if (option === undefined) throw new Error(`no setting is called ${name}`);
  return whyNotInProject(option.project, value, project);
}

describe('a project file', () => {
  it('the project file may set every option except those that run programs, write files or read shared files', () => {
    const names = options.filter(isSetting).filter((option) => option.project !== 'any');
    expect([...new Set(names.map(({ name }) => name))].toSorted()).toEqual([
      'collnet-hosts',
      'events',
      'export',
      'host',
      'hostfile',
      'output',
      'output-filename',
      'plan',
      'report',
      'rsh',
      'wdir',
    ]);
  });

  it.each(['ssh2', 'openssh', './ssh', 'auto'])('the project file may not set rsh to %s', (value) => {
    expect(why('rsh', value)).toBe('a project file may not decide which programs run');
  });

  it.each([
    'LD_PRELOAD=./planted.so',
    'LD_PRELOAD',
    'LD_LIBRARY_PATH',
    'LD_AUDIT=x',
    'LD_*',
    'L*',
    'LD_LIB*',
    'GLIBC_TUNABLES=x',
    'GCONV_PATH',
  ])('the project file may not export %s, which the dynamic loader reads', (value) => {
    expect(why('export', value)).toContain('variables of the dynamic loader');
  });

  it.each([
    'PATH=.:/bin',
    'PYTHONPATH=.',
    'PYTHONSTARTUP=x',
    'PYTHONHOME=x',
    'PYTHONWARNINGS=x',
    'BASH_ENV=x',
    'ENV=x',
    'BASH_FUNC_ls%%=() { id; }',
    'NODE_OPTIONS=--require ./x.js',
    'PERL5LIB=x',
    'RUBYOPT=-rx',
    'JAVA_TOOL_OPTIONS=-javaagent:x',
    'NCCL_NET_PLUGIN=./x.so',
    'NCCL_TUNER_PLUGIN=x',
    'NCCL_PROFILER_PLUGIN=x',
    'NCCL_TOPO_DUMP_FILE=/home/x/.bashrc',
    'NCCL_DEBUG_FILE=x',
    'NCCLRUN_KERNELS=x',
    'NCCLRUN_NODE=x',
    'NCCLRUN_RSH=x',
    'CUDA_INJECTION64_PATH=x',
    'OMPI_MCA_plm_rsh_agent=x',
    'GIT_SSH_COMMAND=x',
    'XDG_CONFIG_HOME=x',
    'HOME=x',
    'TMPDIR=x',
    'EDITOR=x',
  ])('the project file may not export %s', (value) => {
    const name = value.slice(0, value.indexOf('='));
    expect(why('export', value)).toBe(
      `a project file may not give ${name} a value: it can decide what code runs or which files are used`,
    );
  });

  it.each([
    'NCCL_*',
    'NCCL_DEBUG=INFO',
    'NCCL_SOCKET_IFNAME=eth0',
    'NCCL_ALGO=Ring',
    'NCCLRUN_DEVICE=host',
    'OMP_NUM_THREADS=4',
    'CUDA_VISIBLE_DEVICES=0',
    'CUDA_LAUNCH_BLOCKING=1',
    'PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True',
    'PYTHONUNBUFFERED=1',
    'TORCH_NCCL_ASYNC_ERROR_HANDLING=1',
    'WANDB_MODE=offline',
    'HF_TOKEN',
    'PATH',
    'P*',
  ])('the project file may export %s', (value) => {
    expect(why('export', value)).toBeNull();
  });

  it.each([
    ['dir=/tmp/logs', 'this is an absolute path'],
    ['file=../%r', 'this leads out of it'],
    ['dir=logs/../../logs', 'this leads out of it'],
    ['file=.git/hooks/%t', 'this is a hidden file'],
    ['dir=away', `${join(directory, 'away')} leads to ${elsewhere}`],
    ['dir=away/deeper:nocopy', `${join(directory, 'away')} leads to ${elsewhere}`],
    ['tag,file=away/%r', `${join(directory, 'away')} leads to ${elsewhere}`],
    ['file=rank.%r', `${join(directory, 'rank.3')} leads nowhere (ENOENT)`],
    ['file=%h.%r', `${join(directory, 'rank.3')} leads nowhere (ENOENT)`],
    ['file=%hway/%r', `${join(directory, 'away')} leads to ${elsewhere}`],
  ])('the project file may not set output to %s', (value, reason) => {
    expect(why('output', value)).toBe(`a project file may only name paths below its directory, and ${reason}`);
  });

  it.each(['tag', 'dir=logs', 'dir=new/deeper', 'file=logs/%h.%r.%t', 'dir=within', 'file=out.%r', 'no such word'])(
    'the project file may set output to %s',
    (value) => {
      expect(why('output', value)).toBeNull();
    },
  );

  it.each(['report', 'events', 'output-filename', 'wdir'])(
    'the project file may set %s only below its directory',
    (name) => {
      expect(why(name, 'logs/new')).toBeNull();
      expect(why(name, 'logs')).toBeNull();
      expect(why(name, '/tmp/x')).toContain('this is an absolute path');
      expect(why(name, '..')).toContain('this leads out of it');
      expect(why(name, 'away/x')).toContain(`leads to ${elsewhere}`);
    },
  );

  it('the project file may name hostfiles and plans that nobody else can change', () => {
    expect(why('hostfile', 'hosts')).toBeNull();
    expect(why('hostfile', '-')).toBeNull();
    expect(why('hostfile', join(directory, 'hosts'))).toBeNull();
    expect(why('plan', '/etc/passwd')).toBeNull();
    expect(why('host', 'a:2,^hosts,b')).toBeNull();
  });

  it('the project file may not name hostfiles and plans that others can change', () => {
    const reason = 'a project file may not name a file that is not yours: every user may write to';
    expect(why('hostfile', 'anybodys')).toBe(`${reason} it (mode 0666)`);
    expect(why('hostfile', '/tmp/none')).toContain(reason);
    expect(why('plan', '/tmp/none')).toContain(reason);
    expect(why('host', 'a:2, ^/tmp/none')).toContain(reason);
  });
});

describe('a refused value', () => {
  const json = '{\n  "np": 2,\n  "export": ["A=1", "LD_PRELOAD=x"],\n  "rsh": "./ssh", "output": "dir=/tmp"\n}';

  it('the refused value is dropped, and the other values of its list stay', () => {
    const { layer, refusals } = layerOfJson(json, 'ncclrun.json', options, project);
    expect([...layer].map(([name, { values }]) => [name, values])).toEqual([
      ['np', ['2']],
      ['export', ['A=1']],
    ]);
    const reported = refusals.map((refusal) =>
      refusal.kind === 'value' ? [refusal.option.name, refusal.value, refusal.position.line] : [],
    );
    expect(reported).toEqual([
      ['export', 'LD_PRELOAD=x', 3],
      ['rsh', './ssh', 4],
      ['output', 'dir=/tmp', 4],
    ]);
  });

  it("the user's own file may contain the refused values", () => {
    const { layer, refusals } = layerOfJson(json, '/home/ann/.config/ncclrun/config.json', options, null);
    expect(refusals).toEqual([]);
    expect(layer.get('rsh')?.values).toEqual(['./ssh']);
    expect(layer.get('export')?.values).toEqual(['A=1', 'LD_PRELOAD=x']);
  });
});
