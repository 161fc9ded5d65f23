/** What hosts found out with each other: pairs without a connection, and working directories that are not one. */
import type { TogetherAnswer } from '../../control/together.ts';
import type { Finding } from './finding.ts';

export interface AnsweredHost {
  readonly name: string;
  readonly answer: TogetherAnswer;
}

/** Of the hosts that tried. */
const MOST = 0.75;
/** Pairs that are named one by one. */
const MAX_PAIRS = 8;
const FIREWALL = 'see firewalls and routes between them, and which interface is meant (NCCL_SOCKET_IFNAME)';

interface FailedPair {
  readonly from: string;
  readonly to: string;
  readonly address: string;
  readonly error: string;
}

export function togetherFindings(answered: readonly AnsweredHost[], port: number): Finding[] {
  return [...reachFindings(answered, port), ...sharedFindings(answered)];
}

function reachFindings(answered: readonly AnsweredHost[], port: number): Finding[] {
  const common = { check: 'network.mesh', subject: '' };
  const deaf = answered.filter(({ answer }) => !answer.listened).map(({ name }) => name);
  const failed = answered.flatMap(({ name, answer }) =>
    answer.unreached.flatMap(({ host, address, error }): FailedPair[] =>
      // A host without an answer of its own may have ended before it was tried.
      answered.some((other) => other.name === host) && !deaf.includes(host)
        ? [{ from: name, to: host, address, error }]
        : [],
    ),
  );
  const others = answered.length - 1;
  const cutOff = answered.flatMap(({ name }) => {
    const own = failed.filter(({ to }) => to === name);
    const [example] = own;
    return example !== undefined && others > 1 && own.length >= MOST * others
      ? [{ ...example, times: own.length }]
      : [];
  });
  const left = failed.filter(({ to }) => !cutOff.some((host) => host.to === to));
  const bad = new Set([...cutOff.map(({ to }) => to), ...left.flatMap(({ from, to }) => [from, to]), ...deaf]);
  return [
    ...cutOff.map(({ to, address, error, times }): Finding => {
      const message = `${times} of ${others} hosts do not reach it at ${address}, port ${port}: ${error}`;
      return { ...common, answer: 'fail', host: to, message, remedy: FIREWALL };
    }),
    ...left.slice(0, MAX_PAIRS).map(({ from, to, address, error }): Finding => {
      const message = `does not reach ${to} at ${address}, port ${port}: ${error}`;
      return { ...common, answer: 'fail', host: from, message, remedy: FIREWALL };
    }),
    ...deaf.map((host): Finding => {
      const message = `port ${port} is in use there, so nobody could try to reach it`;
      return { ...common, answer: 'unknown', host, message, remedy: 'run doctor again: it tries another port' };
    }),
    ...answered.filter(({ name }) => !bad.has(name)).map(({ name }) => okOf('network.mesh', name)),
  ];
}

function sharedFindings(answered: readonly AnsweredHost[]): Finding[] {
  const writer = answered.find(({ answer: { file } }) => file === 'written' || file === 'unwritable');
  if (writer === undefined) return [];
  const common = { check: 'files.shared', subject: '' };
  if (writer.answer.file === 'unwritable') {
    const message = 'whether hosts share its working directory was not tried: it cannot be written to';
    return [{ ...common, answer: 'note', host: writer.name, message, remedy: 'start in a directory of yours' }];
  }
  return answered.flatMap(({ name, answer: { file } }): Finding[] => {
    if (file === 'absent') {
      const message = `its working directory is not that of ${writer.name}: a file from there has not appeared within 3 s`;
      const remedy = 'start in a directory on a shared file system (--wdir), or copy what the job reads to each host';
      return [{ ...common, answer: 'note', host: name, message, remedy }];
    }
    return file === 'unknown' ? [] : [okOf('files.shared', name)];
  });
}

function okOf(check: string, host: string): Finding {
  return { check, answer: 'ok', host, subject: '', message: '', remedy: null };
}
