/**
 * Slurm's accounting, which `sacct` asks: slurmdbd on the login node, and the MariaDB that it keeps its tables in, which listens in the
 * cluster's network alone and asks for no password.
 */
import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { findProgram } from './capability.ts';
import { LOGIN_ADDRESS } from './cluster.ts';

/** Null, or the sentence why there is no accounting here. */
export function accountingUnavailable(): string | null {
  const missing = ['sacct', 'sacctmgr', 'slurmdbd', 'mariadbd'].filter((name) => findProgram(name) === null);
  return missing.length > 0 ? `not installed: ${missing.join(', ')}` : null;
}

/** Lines of slurm.conf. */
export function accountingSettings(on: boolean, munge: string): string[] {
  if (!on) return ['AccountingStorageType=accounting_storage/none'];
  const host = [`AccountingStorageHost=${LOGIN_ADDRESS}`, `AccountingStoragePass=${munge}`];
  return ['AccountingStorageType=accounting_storage/slurmdbd', ...host];
}

/** Writes slurmdbd.conf where slurm.conf is; resolves to how MariaDB is started, and to the file that is there once it answers. */
export async function writeAccounting(directory: string, munge: string): Promise<{ argv: string[]; ready: string }> {
  const tables = join(directory, 'tables');
  const ready = join(directory, 'mariadb.socket');
  await mkdir(tables);
  const settings = [
    'DbdHost=login',
    `DbdAddr=${LOGIN_ADDRESS}`,
    'SlurmUser=root',
    'AuthType=auth/munge',
    `AuthInfo=socket=${munge}`,
    `PidFile=${directory}/slurmdbd.pid`,
    `LogFile=${directory}/slurmdbd.log`,
    'StorageType=accounting_storage/mysql',
    `StorageHost=${LOGIN_ADDRESS}`,
    'StorageUser=root',
    'StoragePass=none',
  ];
  await writeFile(join(directory, 'slurmdbd.conf'), `${settings.join('\n')}\n`, { mode: 0o600 });
  const options = [
    '--skip-grant-tables',
    `--bind-address=${LOGIN_ADDRESS}`,
    `--datadir=${tables}`,
    `--socket=${ready}`,
  ];
  const argv = ['mariadbd', '--no-defaults', '--user=root', ...options, `--pid-file=${directory}/mariadb.pid`];
  return { argv, ready };
}
