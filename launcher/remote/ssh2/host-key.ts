/** Verifies a host's key against known_hosts, and describes a mismatch. */
import type { KnownHost } from '../known-hosts/entry.ts';
import { keyType } from '../known-hosts/entry.ts';
import { addKnownHost } from '../known-hosts/files.ts';
import { fingerprint, HostRecords } from '../known-hosts/judge.ts';
import type { KnownHostsFiles } from '../known-hosts/files.ts';
import { makeConnectionError } from '../shell/connection-error.ts';
import type { ConnectionError } from '../shell/connection-error.ts';
import { quotedIfNeeded } from '../shell/shell.ts';
import { sshWords, type HopSettings } from './settings.ts';

export function recordsOf(settings: HopSettings, files: KnownHostsFiles): HostRecords {
  const entries = files.entries([...settings.userKnownHosts, ...settings.globalKnownHosts]);
  return new HostRecords(entries, settings.keyName, settings.keyPort);
}

/** Null: it is the host. */
export function refuseKey(settings: HopSettings, records: HostRecords, key: Buffer): ConnectionError | null {
  const verdict = records.judge(key);
  switch (verdict.kind) {
    case 'known':
      return null;
    case 'revoked':
      return refusal(settings, `the key ${shown(key)} of ${records.name} is revoked: ${describeLocation(verdict.by)}`, [
        `the host must get another key, or somebody else answers in its place; do not connect until that is clear`,
      ]);
    case 'changed':
      if (settings.strict === 'off') return null;
      return refusal(
        settings,
        `the key of ${records.name} has changed: it shows ${shown(key)}, known is ${verdict.old.map((old) => `${shown(old.key)} (${describeLocation(old)})`).join(', ')}`,
        [
          'if the host was installed anew, forget the old key:',
          ...[...new Set(verdict.old.map(({ file }) => file))].map(
            (file) => `ssh-keygen -R ${quotedIfNeeded(records.name)} -f ${quotedIfNeeded(file)}`,
          ),
          'if it was not, somebody else may answer in its place',
        ],
      );
    case 'unknown':
      if (settings.strict !== 'refuse') return add(settings, records, key);
      return refusal(settings, unknownText(records, key, verdict.others), [
        `compare the fingerprint with the host's own (ssh-keygen -lf /etc/ssh/ssh_host_*_key.pub there), then let ssh add the key: ssh ${sshWords(settings)} true`,
      ]);
    default:
      return verdict satisfies never;
  }
}

function unknownText(records: HostRecords, key: Buffer, others: readonly KnownHost[]): string {
  const known = others.map((other) => `${shown(other.key)} (${describeLocation(other)})`).join(', ');
  const authorities = records.authorities.map((authority) => describeLocation(authority)).join(', ');
  const beside = [
    known === '' ? '' : `; of other types ${known}`,
    authorities === ''
      ? ''
      : `; its certificates would be trusted (${authorities}), which ssh2 cannot check: --rsh openssh can`,
  ];
  return `no key of ${records.name} is known that is ${keyType(key) ?? 'like the one shown'}; it shows ${shown(key)}${beside.join('')}`;
}

function add(settings: HopSettings, records: HostRecords, key: Buffer): null {
  const [file] = settings.userKnownHosts;
  try {
    if (file !== undefined) addKnownHost(file, records.name, key, settings.hashKnownHosts);
  } catch {
    // A file that cannot be written is no reason to stay away, for ssh neither.
  }
  return null;
}

function refusal(settings: HopSettings, what: string, remedy: readonly string[]): ConnectionError {
  const detail = `${settings.hostName}, port ${settings.port}: ${what}`;
  return makeConnectionError('host-key', detail, remedy.join('\n'));
}

/** "ED25519 SHA256:…" */
function shown(key: Buffer): string {
  const type = keyType(key) ?? 'unreadable';
  return `${type.replace(/^ssh-/, '').replace(/-.*/, '').toUpperCase()} ${fingerprint(key)}`;
}

function describeLocation({ file, line }: KnownHost): string {
  return `${file}:${line}`;
}
