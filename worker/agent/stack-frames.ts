/** Makes one list of a thread's native and Python frames, as programmers read it. */
import type { NativeFrame, PythonFrame, ReadThread, StackFrame } from '../../control/messages/stack.ts';

/** The interpreter's loop: it stands for the Python frames that it runs. `_TAIL_CALL_`: CPython 3.14 in one of its builds. */
const INTERPRETER_LOOP = /^(?:_PyEval_EvalFrameDefault|_TAIL_CALL_\w+)\b/;
/** How the interpreter calls C functions. */
const INTERPRETER_CALLS =
  /^(?:_?Py(?:Object|Eval|Vectorcall|Function|CFunction|Call|Method|Run|Main|Import|Gen|Type|Slot)\w*|c?function_\w+|method\w*_\w+|builtin_exec\w*|slot_tp_\w+|wrapper_call|object_vacall|run_(?:eval|mod)\w*|pymain_\w+|property_\w+|partial_\w+|type_call|gen_\w+|tuplegetter\w*|_PyEval\w*)\b/;
/** What every program begins with. */
const START = /^(?:_start|_?_libc_start_\w+|start_thread|_*clone3?|_dl_start_user)\b/;
const LIBC = /\/(?:libc\.so\.6|libc-2\.\d+\.so|libpthread\.so\.0|libpthread-2\.\d+\.so|ld-musl-\w+\.so\.1)$/;
const ENGINE = /(?:^|\/)libnccl\.so\.2$/;
/** Names that V8 writes into perf's map: `JS:*render /srv/app.js:12:3`, `LazyCompile:~render file:///srv/app.js:12:3`. */
const V8_NAME =
  /^(?:JS|LazyCompile|Function|Script|Eval|RegExp|BytecodeHandler|Builtin|Stub)?:?[*~^+]*(.*?)(?: (\S+?):(\d+)(?::\d+)?)?$/;
const V8_CODE = /^(?:JS|LazyCompile|Function|Script|Eval):/;
const OPERATOR = /\boperator(?:\(\)|[-+*/%^&|~!=<>,[\]]+)/;
const WITHOUT_SYMBOLS = 'JavaScript (no symbols)';
const MAX_NAME = 200;

/** The innermost first. */
export function framesOf({ native, python }: ReadThread): StackFrame[] {
  const loop = native.find((frame) => INTERPRETER_LOOP.test(frame.function));
  const interpreter = python.length === 0 ? null : (loop?.module ?? null);
  const frames = interpreter === null ? native.map(nativeFrame) : mixed(native, python, interpreter);
  const rest = interpreter === null ? python.map(pythonFrame) : [];
  return withoutStart(foldNameless(foldJavaScript([...frames, ...rest], native)));
}

/** One of the engine's own threads: all its code is the engine's, but for the system's calls. */
export function isEngineThread({ native }: ReadThread): boolean {
  const outer = native.findLast((frame) => !LIBC.test(frame.module) && !START.test(frame.function));
  return outer !== undefined && ENGINE.test(outer.module);
}

/** The loop's frames become the Python frames that they run. Of the interpreter's other frames those stay that lead out of it. */
function mixed(native: readonly NativeFrame[], python: readonly PythonFrame[], interpreter: string): StackFrame[] {
  const frames: StackFrame[] = [];
  let next = 0;
  for (const [index, frame] of native.entries()) {
    const isOutside = next >= python.length; // of all Python frames
    if (frame.module !== interpreter) {
      if (!isOutside || !isBeginning(frame)) frames.push(nativeFrame(frame));
    } else if (INTERPRETER_LOOP.test(frame.function)) {
      const entry = python.findIndex((one, at) => at >= next && one.isEntry);
      const end = entry === -1 ? python.length : entry + 1;
      frames.push(...python.slice(next, end).map(pythonFrame));
      next = end;
    } else if (!isOutside && leadsOut(frame, native[index - 1], interpreter)) frames.push(nativeFrame(frame));
  }
  return [...frames, ...python.slice(next).map(pythonFrame)];
}

/** How a program comes to its interpreter, unless it is one that embeds Python. */
function isBeginning({ function: name, module }: NativeFrame): boolean {
  return name === '' || name === 'main' || LIBC.test(module) || START.test(name);
}

function leadsOut(frame: NativeFrame, callee: NativeFrame | undefined, interpreter: string): boolean {
  if (callee === undefined) return true;
  return callee.module !== interpreter && frame.function !== '' && !INTERPRETER_CALLS.test(frame.function);
}

function nativeFrame({ function: name, module }: NativeFrame): StackFrame {
  const base = { language: 'native', file: null, line: null } as const;
  if (module === '') return { ...base, function: name === '' ? null : name, module: null };
  return { ...base, function: name === '' ? null : shortName(name), module };
}

function pythonFrame({ function: name, file, line }: PythonFrame): StackFrame {
  return { language: 'python', function: name, file, line: line === 0 ? null : line, module: null };
}

/** A C++ name without its parameters and template arguments: `at::native::add(at::Tensor const&)` → `at::native::add`. */
export function shortName(written: string): string {
  const name = written.replaceAll('(anonymous namespace)', '(anonymous)').replace(/ \[clone [^\]]*\]/g, '');
  const [operator = ''] = OPERATOR.exec(name) ?? [];
  const plain = withoutArguments(operator === '' ? name : name.slice(0, name.indexOf(operator)));
  const scope = plain.trim().split(' ').at(-1) ?? '';
  return (scope + operator || name).slice(0, MAX_NAME);
}

function withoutArguments(name: string): string {
  let [short, depth] = ['', 0];
  for (let index = 0; index < name.length; index++) {
    const letter = name.charAt(index);
    if (letter === '<') depth += 1;
    else if (letter === '>' && depth > 0) depth -= 1;
    else if (letter === '(' && depth === 0 && index > 0 && !name.startsWith('(anonymous)', index)) break;
    else if (depth === 0) short += letter;
  }
  return short;
}

/** Code that V8 has made stands between its own; without names for it there is one frame for all that follow each other. */
function foldJavaScript(frames: readonly StackFrame[], native: readonly NativeFrame[]): StackFrame[] {
  const isNode = native.some((frame) => /^(?:node::|v8::|Builtins_)/.test(frame.function));
  if (!isNode) return [...frames];
  const folded: StackFrame[] = [];
  for (const frame of frames) {
    const one = isMade(frame) ? scriptFrame(frame.function) : frame;
    const isRepeated = one.function === WITHOUT_SYMBOLS && folded.at(-1)?.function === WITHOUT_SYMBOLS;
    if (!isRepeated) folded.push(one);
  }
  const isNamed = folded.some((frame) => frame.language === 'javascript' && frame.function !== WITHOUT_SYMBOLS);
  return isNamed ? folded.filter((frame) => frame.function !== WITHOUT_SYMBOLS) : folded;
}

function isMade({ language, module, function: name }: StackFrame): boolean {
  return language === 'native' && (module === null || name?.startsWith('Builtins_') === true);
}

function scriptFrame(name: string | null): StackFrame {
  const base = { language: 'javascript', module: null } as const;
  if (name === null || !V8_CODE.test(name)) return { ...base, function: WITHOUT_SYMBOLS, file: null, line: null };
  const [, called = '', file = null, line = null] = V8_NAME.exec(name) ?? [];
  return { ...base, function: called === '' ? '(anonymous)' : called, file, line: line === null ? null : Number(line) };
}

/** Neighbours without names in one module say no more than one of them. */
function foldNameless(frames: readonly StackFrame[]): StackFrame[] {
  return frames.filter((frame, index) => {
    const caller = frames[index + 1];
    const isRepeated = frame.function === null && caller?.function === null && caller.module === frame.module;
    return !(isRepeated && frame.language === caller.language);
  });
}

function withoutStart(frames: readonly StackFrame[]): StackFrame[] {
  let end = frames.length;
  while (end > 1 && isStart(frames[end - 1])) end -= 1;
  return frames.slice(0, end);
}

/** Its names are in libc's debugging symbols, which few hosts have. */
function isStart(frame: StackFrame | undefined): boolean {
  if (frame?.language !== 'native') return false;
  return frame.function === null ? LIBC.test(frame.module ?? '') : START.test(frame.function);
}
