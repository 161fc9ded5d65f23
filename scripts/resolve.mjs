// What a rank's Node is given where it would not find 'ncclrun': dist/bundle/resolve.mjs, beside the library.
import { registerHooks } from 'node:module';

registerHooks({
  resolve(specifier, context, next) {
    if (specifier !== 'ncclrun') return next(specifier, context);
    return { url: new URL('library.mjs', import.meta.url).href, format: 'module', shortCircuit: true };
  },
});
