/** Mutants that no test needs to kill, each with the reason. */
import type { Accepted } from './acceptance.ts';

export const accepted: readonly Accepted[] = [
  {
    file: 'control/link/call.ts',
    source: 'const pauseMs = max / 2 + Math.random() * (max / 2);',
    change: '2 -> 3',
    reason: 'A random pause between attempts: a sixth of its limit more or less.',
  },
  {
    file: 'control/link/stream-link.ts',
    source: 'if (this.#closed || this.#ending || !this.#writable.writable) return;',
    change: '|| -> &&',
    reason: 'Equivalent: a link that ends or has closed has ended its stream, which is not writable any more.',
  },
  {
    file: 'control/messages/bytes.ts',
    source: 'this.#length = this.#room(8).writeBigUInt64LE(BigInt(value), this.#length);',
    change: '8 -> 9',
    reason: 'Equivalent: one byte of room more than needed.',
  },
  {
    file: 'control/messages/rendezvous.ts',
    source: 'export const ROUTED_WANTED = 1;',
    change: '1 -> 2',
    reason: 'Equivalent: one bit of the flags of a frame that our own code writes and reads by this name.',
  },
  {
    file: 'control/plan/u64.ts',
    source: 'view.setUint32(at, value % 2 ** 32, true);',
    change: '32 -> 33',
    reason: 'Equivalent: setUint32 takes its number modulo 2^32 itself.',
  },
  {
    file: 'control/planner/device/gpus.ts',
    source: 'latencyBetween: 0,',
    change: '0 -> 1',
    reason: 'A guess for hosts of which nothing is known: what GPUs there can do does not depend on it.',
  },
  {
    file: 'control/planner/machine/path.ts',
    source: 'DIS: 11,',
    change: '11 -> 12',
    reason: 'Equivalent: the farthest distance is farther than all others either way.',
  },
  {
    file: 'control/planner/plan.ts',
    source: 'const rails = nics[0]?.length ?? 0;',
    change: '0 -> 1',
    reason: 'Equivalent: every host has its list of NICs, which may be empty.',
  },
  {
    file: 'control/planner/channel-set.ts',
    source: 'if (parent !== -1 && top !== undefined) tree[top] = members[parent]?.[0] ?? top;',
    change: '1 -> 2',
    reason: 'Equivalent: there is no host -1, and the top stays its own parent.',
  },
  {
    file: 'control/planner/cluster/agreement.ts',
    source: 'crossNic: one.crossNic > other.crossNic ? one.crossNic : other.crossNic,',
    change: '> -> >=',
    reason: 'Equivalent: of two equal numbers either one.',
  },
  {
    file: 'control/planner/cluster/hierarchy.ts',
    source:
      "this.type = all.reduce<PathType>((far, { type }) => (distance(type) > distance(far) ? type : far), 'LOC');",
    change: '> -> >=',
    reason: 'Equivalent: types at one distance are one type.',
  },
  {
    file: 'control/planner/device/gpu-tuning.ts',
    source: 'const LARGEST = 2 ** 36;',
    change: '36 -> 37',
    reason: 'The size up to which variants are compared: 64 GiB, which no GPU sends at once.',
  },
  {
    file: 'control/planner/device/gpu-tuning.ts',
    source: 'if (next > LARGEST) return null;',
    change: '> -> >=',
    reason: 'One size of the comparison more or less, at 64 GiB.',
  },
  {
    file: 'control/planner/search/attempts.ts',
    source: 'for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return false;',
    change: '< -> <=',
    reason: 'Equivalent: behind their ends both lists have nothing.',
  },
  {
    file: 'control/planner/search/attempts.ts',
    source: 'for (let i = 0; i < this.#tried.length; i++) {',
    change: '0 -> 1',
    reason: 'Equivalent but for time: the first attempt is searched again, and finds the same.',
  },
  {
    file: 'control/planner/search/chains.ts',
    source: 'for (let gpu = 0; gpu < this.#gpus; gpu++) if (this.#goesOn(gpu, 1, isUsed, isPath)) return true;',
    change: '< -> <=',
    reason: 'Equivalent: from a GPU that does not exist no path goes on.',
  },
  {
    file: 'control/planner/search/search.ts',
    source: 'const farthest = Math.max(0, ...this.#context.nearDistances.filter((far) => far <= distanceBetween));',
    change: '0 -> 1',
    reason: 'Equivalent: no GPU lies so near to a NIC, and the number only tells attempts from each other.',
  },
  {
    file: 'control/planner/search/search.ts',
    source: 'const STEPS = 1 << 14;',
    change: '1 -> 2',
    reason: 'A budget that no known machine uses up: twice as many steps find the same channels.',
  },
  {
    file: 'control/planner/search/search.ts',
    source: 'const STEPS_WHEN_LATE = 1 << 9;',
    change: '1 -> 2',
    reason:
      'A budget for searches that are late already: twice as many steps find the same channels on known machines.',
  },
  {
    file: 'control/planner/search/step-budget.ts',
    source: 'export const STEP_BUDGET = 6 << 10;',
    change: '6 -> 7',
    reason: 'A budget: a sixth more of it finds the same channels on known machines.',
  },
  {
    file: 'control/printable.ts',
    source: "if (character < ' ') return String.raw`\\x${hexadecimal(character.charCodeAt(0), 2)}`;",
    change: '< -> <=',
    reason: 'Equivalent: a space is no controlling character.',
  },
  {
    file: 'control/topology/read-xml.ts',
    source: 'if (xml.length > MAX_CHARACTERS) {',
    change: '> -> >=',
    reason: 'One character more or less of 16 million: no topology has a fraction of that.',
  },
  {
    file: 'launcher/allocation/managed/slurm.ts',
    source: 'if (sum > 0) return sum;',
    change: '> -> >=',
    reason: 'Equivalent: there is a word at least, and a word that states 0 GPUs or none is refused before.',
  },
  {
    file: 'launcher/cli/commands/bundle.ts',
    source: 'const size = `${(bytes.length / 2 ** 20).toFixed(1)} MiB`;',
    change: 'bytes.length -> (bytes.length - 1)',
    reason: 'One byte more or less of a size in tenths of a MiB.',
  },
  {
    file: 'launcher/remote/without-script.ts',
    source:
      'const runs = new Set(Array.from({ length: Math.max(0, ours.length - RUN + 1) }, (_, at) => ours.slice(at, at + RUN)));',
    change: '1 -> 2',
    reason: 'Equivalent: the additional run at the end is shorter than RUN, and no run of a line equals it.',
  },
  {
    file: 'launcher/report/lane.ts',
    source: 'if (this.#heldBytes <= heldLimit) resolve();',
    change: '<= -> <',
    reason: 'One byte more or less of 16 MiB that a lane holds for a rank that is not finished with its line.',
  },
  {
    file: 'worker/agent/hang-reporter.ts',
    source:
      "return Math.max(0, now - Math.max(slot.lastProgressNs, slot.state === 'waiting' ? 0 : slot.startedNs)) / 1e6;",
    change: '0 -> 1',
    reason: 'A nanosecond of a time in milliseconds, or a start that lies before every progress either way.',
  },
  {
    file: 'worker/agent/tcp-silence.ts',
    source: '? Number.parseInt(again, 16)',
    change: '16 -> 17',
    reason: 'Equivalent: only whether the number is above 0 matters.',
  },
  {
    file: 'worker/topology/verbs.ts',
    source: 'return bits === 0 ? -1 : 31 - Math.clz32(bits & -bits);',
    change: '1 -> 2',
    reason: 'Equivalent: no list has an entry at -1 or at -2.',
  },
  {
    file: 'launcher/job/output-flow.ts',
    source: 'const source = 2 * rank + (flags & OUTPUT_STDERR);',
    change: '2 -> 3',
    reason: 'Equivalent: the number only tells the streams of a host from each other, and 3 does so as well.',
  },
  {
    file: 'launcher/local/host.ts',
    source: 'return hostFacts(false, false, undefined, loadNative());',
    change: 'false -> true',
    reason: 'Equivalent but for time: the second parameter only adds the topology, which the result does not have.',
  },
  {
    file: 'launcher/plan/engine.ts',
    source: 'return new Planner(null, environment).plan(inputOf(cluster, environment, here), true);',
    change: 'true -> false',
    reason: 'Equivalent: whether all ranks take part matters for a given plan only, and none is given.',
  },
  {
    file: 'launcher/remote/remote-agent.ts',
    source: 'const shell = radix > 0 && hosts.length > radix ? await treeOf(direct, hosts, radix) : direct;',
    change: '> -> >=',
    reason: 'Equivalent: a tree of radix 0, or of no more hosts than its radix, has no child agents.',
  },
  {
    file: 'launcher/remote/staging/archive.ts',
    source: 'for (let begin = 0; begin < bytes.length; begin += PART_BYTES) {',
    change: '< -> <=',
    reason: 'Equivalent: an empty part adds nothing to the hash.',
  },
  {
    file: 'launcher/report/lane.ts',
    source: "return 2 * chunk.rank + (chunk.stream === 'stdout' ? 0 : 1);",
    change: '=== -> !==',
    reason: 'Equivalent: the number only tells the streams of ranks from each other.',
  },
  {
    file: 'launcher/report/perf-rows.ts',
    source: "return typeof value === 'object' && value !== null;",
    change: '&& -> ||',
    reason: 'Equivalent: whoever calls it has an object.',
  },
  {
    file: 'launcher/report/shown.ts',
    source: 'if (this.#linesSinceReport < BURYING_LINES) this.#linesSinceReport += lineCount(bytes, BURYING_LINES);',
    change: '< -> <=',
    reason: 'Equivalent: a count beyond the limit says no more than the limit.',
  },
  {
    file: 'launcher/report/shown.ts',
    source: 'if (this.#lines < ENOUGH_LINES) this.#lines += lineCount(bytes, ENOUGH_LINES);',
    change: '< -> <=',
    reason: 'Equivalent: a count beyond the limit says no more than the limit.',
  },
  {
    file: 'launcher/text/nearest.ts',
    source: 'let last = Array.from({ length: to.length + 1 }, (_, index) => index);',
    change: '1 -> 2',
    reason: 'Equivalent: no distance is read from the additional place.',
  },
  {
    file: 'launcher/tune/candidates.ts',
    source: 'true,',
    change: 'true -> false',
    reason: 'Equivalent: whether all ranks take part matters for a given plan only, and none is given.',
  },
];
