/** Native, Python and JavaScript frames of a thread become one list. */
import { describe, expect, it } from 'vitest';
import type { NativeFrame, PythonFrame, ReadThread, StackFrame } from '../../control/messages/stack.ts';
import { framesOf, isEngineThread, shortName } from '../../worker/agent/stack-frames.ts';

const LIBC = '/usr/lib/libc.so.6';
const PYTHON = '/usr/bin/python3.11';
const NODE = '/usr/bin/node';
const native = (name: string, module: string): NativeFrame => ({ function: name, module });
const python = (name: string, line: number, isEntry = false): PythonFrame => ({
  function: name,
  file: '/srv/train.py',
  line,
  isEntry,
});

function thread(frames: readonly NativeFrame[], scripts: readonly PythonFrame[] = []): ReadThread {
  return { thread: 1, state: 'S', isRead: true, isCut: false, name: '', native: frames, python: scripts };
}

const names = (frames: readonly StackFrame[]) =>
  frames.map((frame) => (frame.line === null ? frame.function : `${frame.function}:${frame.line}`));

const started = [native('Py_RunMain', PYTHON), native('main', PYTHON), native('__libc_start_main', LIBC)];

describe('Python frames', () => {
  it('they replace the frames of the interpreter that runs them', () => {
    const frames = [
      native('clock_nanosleep', LIBC),
      native('time_sleep', PYTHON),
      native('cfunction_vectorcall_O', PYTHON),
      native('_PyEval_EvalFrameDefault', PYTHON),
      native('PyEval_EvalCode', PYTHON),
      ...started,
    ];
    const scripts = [python('fetch', 3), python('train', 9), python('<module>', 14, true)];
    expect(names(framesOf(thread(frames, scripts)))).toEqual([
      'clock_nanosleep',
      'time_sleep',
      'fetch:3',
      'train:9',
      '<module>:14',
    ]);
  });

  it('the interpreter’s own frame is the innermost if it calls nothing', () => {
    const frames = [native('list_sort', PYTHON), native('_PyEval_EvalFrameDefault', PYTHON), ...started];
    expect(names(framesOf(thread(frames, [python('order', 3, true)])))).toEqual(['list_sort', 'order:3']);
  });

  it('native code between two runs of the interpreter stays between their frames', () => {
    const frames = [
      native('_PyEval_EvalFrameDefault', PYTHON),
      native('PyObject_Call', PYTHON),
      native('engine_step', '/srv/torch.so'),
      native('cfunction_call', PYTHON),
      native('_PyEval_EvalFrameDefault.cold', PYTHON),
      ...started,
    ];
    const scripts = [python('hook', 1), python('apply', 2, true), python('backward', 3), python('<module>', 4, true)];
    expect(names(framesOf(thread(frames, scripts)))).toEqual([
      'hook:1',
      'apply:2',
      'engine_step',
      'backward:3',
      '<module>:4',
    ]);
  });

  it('what leads to the interpreter is left out, but for programs that embed it', () => {
    const LIBRARY = '/usr/lib/libpython3.12.so.1.0';
    const loop = [native('poll', LIBC), native('_PyEval_EvalFrameDefault', LIBRARY), native('Py_BytesMain', LIBRARY)];
    const begun = [native('', '/usr/bin/python3'), native('__libc_start_main', LIBC), native('', '/usr/bin/python3')];
    const scripts = [python('train', 9, true)];
    expect(names(framesOf(thread([...loop, ...begun], scripts)))).toEqual(['poll', 'train:9']);
    const embedded = [...loop, native('Simulator::step()', '/srv/simulator'), native('main', '/srv/simulator')];
    expect(names(framesOf(thread(embedded, scripts)))).toEqual(['poll', 'train:9', 'Simulator::step']);
  });

  it('they follow the native frames where those do not reach the interpreter', () => {
    const frames = framesOf(thread([native('poll', LIBC)], [python('wait', 7), python('<module>', 9, true)]));
    expect(names(frames)).toEqual(['poll', 'wait:7', '<module>:9']);
  });

  it('the interpreter keeps its own frames where Python has none', () => {
    const frames = [native('poll', LIBC), native('_PyEval_EvalFrameDefault', PYTHON), ...started];
    expect(names(framesOf(thread(frames)))).toEqual(['poll', '_PyEval_EvalFrameDefault', 'Py_RunMain', 'main']);
  });
});

const scripted = (made: readonly string[]) => [
  native('v8::internal::Builtin_AtomicsWait(int, unsigned long*)', NODE),
  ...made.map((name) => native(name, '')),
  native('Builtins_JSEntry', NODE),
  native('node::Start(int, char**)', NODE),
];

describe('JavaScript frames', () => {
  it('those without names are one', () => {
    expect(names(framesOf(thread(scripted(['', '']))))).toEqual([
      'v8::internal::Builtin_AtomicsWait',
      'JavaScript (no symbols)',
      'node::Start',
    ]);
  });

  it("those in perf's map have function, file and line", () => {
    const found = framesOf(thread(scripted(['JS:*wait file:///srv/a.mjs:2:15', 'LazyCompile:~ /srv/b.js:7:1', ''])));
    expect(names(found)).toEqual(['v8::internal::Builtin_AtomicsWait', 'wait:2', '(anonymous):7', 'node::Start']);
    expect(found[1]).toMatchObject({ language: 'javascript', file: 'file:///srv/a.mjs', module: null });
  });
});

describe('native frames', () => {
  it.each([
    ['at::native::add(at::Tensor const&, at::Tensor const&)', 'at::native::add'],
    ['std::vector<int, std::allocator<int> >::push_back(int&&)', 'std::vector::push_back'],
    ['void run<int>(int) [clone .isra.0]', 'run'],
    ['ns::(anonymous namespace)::Worker::loop()', 'ns::(anonymous)::Worker::loop'],
    ['operator<<(std::ostream&, int)', 'operator<<'],
    ['A::operator()(int) const', 'A::operator()'],
    ['read', 'read'],
  ])('the short name of %s is %s', (name, short) => {
    expect(shortName(name)).toBe(short);
  });

  it('what every program begins with is left out, but never all', () => {
    const frames = [
      native('main', '/srv/app'),
      native('', LIBC),
      native('__libc_start_main', LIBC),
      native('_start', '/srv/app'),
    ];
    expect(names(framesOf(thread(frames)))).toEqual(['main']);
    expect(names(framesOf(thread([native('clone3', LIBC)])))).toEqual(['clone3']);
  });

  it('a thread is the engine’s if its first function is', () => {
    const engine = native('ncclrun::ControlThread::run', '/srv/libnccl.so.2');
    expect(isEngineThread(thread([native('ppoll', LIBC), engine, native('', LIBC), native('clone3', LIBC)]))).toBe(
      true,
    );
    expect(isEngineThread(thread([native('ppoll', LIBC), engine, native('main', '/srv/app')]))).toBe(false);
  });
});
