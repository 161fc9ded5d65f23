/** One rank's side of the PMI server: its commands and their answers. */
import { ProtocolError } from '../../../control/messages/protocol-error.ts';
import type { PmiPuts } from '../../../control/messages/pmi.ts';
import { answerLine, CommandReader } from './command.ts';
import type { PmiCommand } from './command.ts';

/** Limits that MPICH's own server states, too. */
const MAX_NAME = 256;
const MAX_KEY = 64;
const MAX_VALUE = 1024;
/** Maximum of keys and values that a rank puts between two barriers. */
const MAX_PUT_BYTES = 1024 * 1024;
const MAPPING = 'PMI_process_mapping';

interface PmiClientOptions {
  readonly size: number;
  /** Index of the rank's program in the job. */
  readonly program: number;
  /** Value of PMI_process_mapping; empty if it is too long to be stated. */
  readonly mapping: string;
  readonly keySpaceName: string;
  readonly get: (key: string) => string | undefined;
  /** False if no key fits any more. */
  readonly put: (key: string, value: string) => boolean;
  readonly send: (lines: string) => void;
  /** The rank waits; `released` ends that. */
  readonly barrier: (barrier: number, puts: PmiPuts) => void;
  readonly abort: (exitCode: number) => void;
  /** A sentence that follows the rank's name. */
  readonly notice: (sentence: string) => void;
}

export class PmiClient {
  readonly #options: PmiClientOptions;
  readonly #reader = new CommandReader();
  #barriers = 0;
  #isWaiting = false;
  #hasFinalized = false;
  #puts = new Map<string, string>();
  #putBytes = 0;
  /** Not yet sent. */
  #answers = '';

  constructor(options: PmiClientOptions) {
    this.#options = options;
  }

  /** Its MPI program is through with MPI: the library shuts the connection down for all processes of the rank. */
  get hasFinalized(): boolean {
    return this.#hasFinalized;
  }

  /** @throws ProtocolError after which the connection is of no more use */
  receive(bytes: Uint8Array): void {
    for (const command of this.#reader.read(bytes)) {
      const answer = this.#answer(command); // a barrier sends the answers before it, and leaves none
      this.#answers += answer;
    }
    this.#sendAnswers();
  }

  /** All ranks have come to the barrier. */
  released(): void {
    this.#isWaiting = false;
    this.#options.send(answerLine('barrier_out', { rc: 0 }));
  }

  #sendAnswers(): void {
    const answers = this.#answers;
    this.#answers = '';
    if (answers !== '') this.#options.send(answers);
  }

  #answer({ name, fields }: PmiCommand): string {
    if (this.#isWaiting && name !== 'abort') throw new ProtocolError(`"${name}" while it waits in a barrier`);
    const { size, program, keySpaceName } = this.#options;
    switch (name) {
      case 'init':
        return this.#init(fields);
      case 'get_maxes':
        return answerLine('maxes', { rc: 0, kvsname_max: MAX_NAME, keylen_max: MAX_KEY, vallen_max: MAX_VALUE });
      case 'get_appnum':
        return answerLine('appnum', { rc: 0, appnum: program });
      case 'get_universe_size':
        return answerLine('universe_size', { rc: 0, size });
      case 'get_my_kvsname':
        return answerLine('my_kvsname', { rc: 0, kvsname: keySpaceName });
      case 'put':
        return this.#put(fields);
      case 'get':
        return this.#get(fields);
      case 'barrier_in':
        return this.#barrier();
      case 'finalize':
        this.#hasFinalized = true;
        return answerLine('finalize_ack', { rc: 0 });
      case 'abort':
        this.#options.abort(Number.parseInt(fields.get('exitcode') ?? '', 10) || 1);
        return '';
      case 'spawn':
        return this.#spawn(fields);
      case 'getbyidx':
        return answerLine('getbyidx_results', { rc: -2, reason: 'no_more_keyvals' });
      case 'publish_name':
        return answerLine('publish_result', { rc: -1, info: 'fail', msg: 'not_supported' });
      case 'unpublish_name':
        return answerLine('unpublish_result', { rc: -1, info: 'fail', msg: 'not_supported' });
      case 'lookup_name':
        return answerLine('lookup_result', { rc: -1, info: 'fail', msg: 'not_supported' });
      default:
        return answerLine('error', { rc: -1, msg: 'unknown_command' });
    }
  }

  #init(fields: ReadonlyMap<string, string>): string {
    const version = fields.get('pmi_version');
    const isOurs = version === '1';
    if (!isOurs)
      this.#options.notice(
        `speaks PMI version ${version?.slice(0, 20) ?? 'unknown'}, and ncclrun serves version 1 (unset PMI_VERSION)`,
      );
    return answerLine('response_to_init', { pmi_version: 1, pmi_subversion: 1, rc: isOurs ? 0 : -1 });
  }

  #put(fields: ReadonlyMap<string, string>): string {
    const key = fields.get('key') ?? '';
    const value = fields.get('value') ?? '';
    const problem = this.#whyNotPut(fields.get('kvsname'), key, value);
    if (problem !== null) return answerLine('put_result', { rc: -1, msg: problem });
    this.#puts.set(key, value);
    this.#putBytes += key.length + value.length;
    return answerLine('put_result', { rc: 0, msg: 'success' });
  }

  #whyNotPut(space: string | undefined, key: string, value: string): string | null {
    if (space !== this.#options.keySpaceName) return 'kvs_not_found';
    if (key === '' || key.length > MAX_KEY) return 'invalid_key_length';
    if (value.length > MAX_VALUE) return 'invalid_value_length';
    if (this.#putBytes + key.length + value.length > MAX_PUT_BYTES) return 'too_many_keys';
    return this.#options.put(key, value) ? null : 'no_room';
  }

  #get(fields: ReadonlyMap<string, string>): string {
    const key = fields.get('key') ?? '';
    const ours = fields.get('kvsname') === this.#options.keySpaceName;
    const value = ours ? this.#valueOf(key) : undefined;
    if (value === undefined) return answerLine('get_result', { rc: -1, msg: 'key_not_found', value: 'unknown' });
    return answerLine('get_result', { rc: 0, msg: 'success', value });
  }

  #valueOf(key: string): string | undefined {
    const { mapping, get } = this.#options;
    return key === MAPPING && mapping !== '' ? mapping : get(key);
  }

  #barrier(): string {
    this.#sendAnswers(); // the barrier may end before `barrier` returns
    this.#isWaiting = true;
    const puts = this.#puts;
    this.#puts = new Map();
    this.#putBytes = 0;
    this.#options.barrier(this.#barriers++, puts);
    return '';
  }

  /** MPI_Comm_spawn_multiple sends one for each program, and reads one answer. */
  #spawn(fields: ReadonlyMap<string, string>): string {
    if (fields.get('spawnssofar') !== fields.get('totspawns')) return '';
    this.#options.notice('calls MPI_Comm_spawn, which ncclrun does not support: start all ranks with -n');
    return answerLine('spawn_result', { rc: -1, status: -1, errmsg: 'not_supported', msg: 'not_supported' });
  }
}
