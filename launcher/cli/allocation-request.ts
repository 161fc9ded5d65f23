/** Merged settings, and what a resource manager has set → which hosts are asked for; the same for a run and for `ncclrun hosts`. */
import type { JobRequest } from '../model/types.ts';
import { findManager } from '../allocation/managed/manager.ts';
import type { Setting, Settings } from './settings.ts';

export function allocationRequest(
  settings: Settings<'host' | 'hostfile' | 'include' | 'exclude' | 'resource-manager'>,
): Pick<JobRequest, 'hostList' | 'hostfile' | 'include' | 'exclude' | 'manager'> {
  const hosts = settings.list('host');
  return {
    hostList: hosts.length === 0 ? null : hosts.join(','),
    hostfile: settings.text('hostfile'),
    include: joined(settings.setting('include')),
    exclude: joined(settings.setting('exclude')),
    manager: findManager(settings.text('resource-manager'), process.env),
  };
}

/** Several --include are one with @ between them. A variable was cut at its commas, which here separate the slots of a host. */
function joined(setting: Setting | null): string | null {
  return setting === null ? null : setting.values.join(setting.source.startsWith('NCCLRUN_') ? ',' : '@');
}
