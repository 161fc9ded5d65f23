/** Every variable that a rank on this machine finds, one by one. */
import { describe, expect, it } from 'vitest';
import { Command } from '../rig/command.ts';
import { environments, printer, promised } from '../rig/rank-environment.ts';

const port = (environment: Readonly<Record<string, string>> | undefined) => Number(environment?.['MASTER_PORT']);

describe('the environment of ranks on one host', () => {
  it('every rank has the documented environment variables with the right values', async () => {
    const ranks = await environments(['-n', '1', ...printer, ':', '-n', '2']);
    expect(ranks).toHaveLength(3);
    for (const [rank, found] of ranks.entries()) {
      for (const name of promised) expect(found, name).toHaveProperty(name);
      const text = String(rank);
      expect(found).toMatchObject({
        RANK: text,
        WORLD_SIZE: '3',
        LOCAL_RANK: text,
        LOCAL_WORLD_SIZE: '3',
        GROUP_RANK: '0',
        GROUP_WORLD_SIZE: '1',
        MASTER_ADDR: '127.0.0.1',
        TORCHELASTIC_RESTART_COUNT: '0',
        TORCHELASTIC_MAX_RESTARTS: '0',
        OMPI_COMM_WORLD_SIZE: '3',
        OMPI_COMM_WORLD_RANK: text,
        OMPI_COMM_WORLD_LOCAL_SIZE: '3',
        OMPI_COMM_WORLD_LOCAL_RANK: text,
        OMPI_COMM_WORLD_NODE_RANK: text,
        PMI_FD: '29',
        PMI_RANK: text,
        PMI_SIZE: '3',
        PMI_SPAWNED: '0',
        MPI_LOCALRANKID: text,
        MPI_LOCALNRANKS: '3',
        NCCLRUN_RANK: text,
        NCCLRUN_SIZE: '3',
        NCCLRUN_LOCAL_RANK: text,
        NCCLRUN_PROGRAM: rank === 0 ? '0' : '1',
      });
      expect(found['NCCLRUN_JOB_ID']).toMatch(/^[0-9a-f]{12}$/u);
      expect(found['TORCHELASTIC_RUN_ID']).toBe(found['NCCLRUN_JOB_ID']);
      expect(found['NCCLRUN_AGENT']).toMatch(/^\/.*\/agent$/u);
      expect(Buffer.from(found['NCCLRUN_UNIQUE_ID'] ?? '', 'base64')).toHaveLength(128);
      expect(found['NCCL_RAS_ADDR']).toMatch(/^localhost:[0-9]+$/u);
      expect(found['NCCL_RAS_ADDR']).not.toBe(`localhost:${found['MASTER_PORT']}`);
      expect(port(found)).toBeGreaterThan(1023);
      for (const name of Object.keys(found)) expect(name).not.toMatch(/^(SLURM_|PMIX_(?!MCA_))/u);
    }
    expect(new Set(ranks.map((found) => found['TORCHELASTIC_ERROR_FILE'])).size).toBe(3);
    for (const name of ['MASTER_PORT', 'NCCLRUN_AGENT', 'NCCLRUN_UNIQUE_ID', 'NCCL_RAS_ADDR'])
      expect(new Set(ranks.map((found) => found[name])).size, name).toBe(1);
  });

  it('two simultaneous jobs get different values', async () => {
    const [[one], [two]] = await Promise.all([environments(['-n', '1']), environments(['-n', '1'])]);
    for (const name of ['MASTER_PORT', 'NCCL_RAS_ADDR', 'NCCLRUN_JOB_ID', 'NCCLRUN_AGENT', 'NCCLRUN_UNIQUE_ID'])
      expect(one?.[name], name).not.toBe(two?.[name]);
  });
});

describe('variables that the user sets', () => {
  it('-x MASTER_ADDR, MASTER_PORT and NCCL_RAS_ADDR override our values', async () => {
    const options = ['-x', 'MASTER_ADDR=10.1.2.3', '-x', 'MASTER_PORT=29500', '-x', 'NCCL_RAS_ADDR=localhost:5'];
    const [found] = await environments(['-n', '1', ...options]);
    expect(found).toMatchObject({ MASTER_ADDR: '10.1.2.3', MASTER_PORT: '29500', NCCL_RAS_ADDR: 'localhost:5' });
  });

  it("NCCL_RAS_ADDR of the launcher's environment reaches the ranks", async () => {
    const [found] = await environments(['-n', '1'], { environment: { NCCL_RAS_ADDR: 'localhost:6' } });
    expect(found).toMatchObject({ NCCL_RAS_ADDR: 'localhost:6' });
  });

  it('-x cannot override the variables that identify a rank', async () => {
    const surrounding = { OMPI_COMM_WORLD_RANK: '7', OMPI_COMM_WORLD_SIZE: '8', RANK: '7', OMPI_OTHER: 'kept' };
    const ranks = await environments(['-n', '2', '-x', 'OMPI_*', '-x', 'RANK', '-x', 'WORLD_SIZE=9'], {
      environment: surrounding,
    });
    for (const [rank, found] of ranks.entries()) {
      const own = {
        OMPI_COMM_WORLD_RANK: String(rank),
        OMPI_COMM_WORLD_SIZE: '2',
        RANK: String(rank),
        WORLD_SIZE: '2',
      };
      expect(found).toMatchObject({ ...own, OMPI_OTHER: 'kept' });
    }
  });

  it('-genv and NCCLRUN_EXPORT set variables of the ranks', async () => {
    expect(await environments(['-n', '1', '-genv', 'A', 'x y=z'])).toMatchObject([{ A: 'x y=z' }]);
    const environment = { NCCLRUN_EXPORT: 'A=1,B', B: 'b' };
    expect(await environments(['-n', '1'], { environment })).toMatchObject([{ A: '1', B: 'b' }]);
  });

  it('the launcher reports an unset -x variable once for all programs', async () => {
    const argv = ['-x', 'NOT_SET_HERE', 'true', ':', '-n', '1', '-x', 'NOT_SET_HERE', 'true'];
    const { status, stderr } = await Command.run(['-n', '1', ...argv]);
    expect(status).toBe(0);
    expect(stderr).toBe('ncclrun: -x NOT_SET_HERE: it is not set here, so the ranks do not get it\n');
  });

  it('the note about an unset -x names --exclude where a host may be meant, as by -x of srun', async () => {
    const { stderr } = await Command.run(['-n', '1', '-x', 'node-3', '-x', 'localhost', 'true']);
    expect(stderr.match(/-x .*/gu)).toEqual([
      '-x node-3: it is not set here, so the ranks do not get it; --exclude node-3 leaves out a host',
      '-x localhost: it is not set here, so the ranks do not get it; --exclude localhost leaves out a host',
    ]);
  });

  it("SLURM_* of the launcher's environment reaches the ranks unchanged", async () => {
    const environment = { SLURM_JOB_ID: '12', SLURM_PROCID: '0', SLURM_NTASKS: '1' };
    const ranks = await environments(['-n', '2'], { environment });
    for (const found of ranks) expect(found).toMatchObject(environment);
  });
});
