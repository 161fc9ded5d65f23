/**
 * --engine ncclrun: the dynamic loader gives every rank our libnccl.so.2 ahead of the one that its program would find. LD_LIBRARY_PATH would not
 * do: the RPATH of PyTorch's libraries is stronger. The symbols of the first library in LD_PRELOAD win, so ours stands before the user's own.
 */
import { accessSync, constants } from 'node:fs';
import { libraryPath } from './installation.ts';
import { messageOf } from '../../control/message-of.ts';

const NAME = 'LD_PRELOAD';

/** Null if ranks can be given the library at `path`; else why not. */
export function preloadProblem(path = libraryPath): { readonly message: string; readonly remedy: string } | null {
  try {
    accessSync(path, constants.R_OK);
  } catch (error) {
    const reason = messageOf(error);
    return {
      message: `--engine ncclrun: the engine cannot be read: ${reason}`,
      remedy: 'install ncclrun there again (npm run build in a checkout), or leave --engine ncclrun out',
    };
  }
  if (!/[\s:;]/u.test(path)) return null;
  return {
    message: `--engine ncclrun: LD_PRELOAD cannot name ${path}: its path has a space, a colon or a semicolon`,
    remedy: 'install ncclrun in a directory without them',
  };
}

/** `environment`: what -x passes on; `own`: this host's. What is preloaded there already stays, after ours. */
export function preloadEnvironment(
  environment: Readonly<Record<string, string>>,
  own: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  const users = environment[NAME] ?? own[NAME] ?? '';
  return { [NAME]: users === '' ? libraryPath : `${libraryPath}:${users}` };
}
