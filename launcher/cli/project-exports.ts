/** Which variables a project file may export to the ranks: none by which it would decide what code they run or which files they use. */

/** Variables of the dynamic loader, by the beginnings of their names. They are handed on in no form. */
const loader = ['LD_', 'GLIBC_TUNABLES', 'GCONV_PATH'];

/** Variables of launchers, shells and tools that start programs, by the beginnings of their names. */
const ofTools = ['BASH_FUNC_', 'GIT_', 'SSH_', 'XDG_', 'OMPI_', 'PMIX_', 'PRTE_', 'SLURM_', 'PIP_', 'NCCLRUN_'];

/** One of NCCLRUN_* that only chooses. */
const harmless = ['NCCLRUN_DEVICE'];

/** What a word of a name ends with where the value is a file, a directory, a program or its options: PYTHONPATH, NCCL_NET_PLUGIN, NODE_OPTIONS. */
const telling =
  /(?:PATH|HOME|DIR|FILE|LIB|LIBS|LIBRARY|PRELOAD|PLUGINS?|HOOKS?|MODULES?|STARTUP|PROFILE|OPTIONS|OPTS|CONFIG|CMD|COMMAND|SHELL|EDITOR|PAGER|BROWSER|FLAGS|DRIVERS)(?:_|$)/iu;

/** Other variables that load code, start programs or find files, although their names do not show it. */
const others = [
  'BASHOPTS',
  'BASH_ENV',
  'CC',
  'CXX',
  'ENV',
  'HOSTALIASES',
  'LESSCLOSE',
  'LESSOPEN',
  'LUA_INIT',
  'OPENSSL_CONF',
  'OPENSSL_ENGINES',
  'PERL5DB',
  'PERL5OPT',
  'PS4',
  'PYTHONBREAKPOINT',
  'PYTHONEXECUTABLE',
  'PYTHONINSPECT',
  'PYTHONPYCACHEPREFIX',
  'PYTHONUSERBASE',
  'PYTHONWARNINGS',
  'RUBYOPT',
  'SHELLOPTS',
  'VISUAL',
];

/**
 * Null, or the sentence why not. `VAR` and `PREFIX*` hand on what the user has set, so only the loader's are refused; of `VAR=value` the value is the
 * file's.
 */
export function whyNotExported(text: string): string | null {
  const end = text.indexOf('=');
  const name = end === -1 ? text : text.slice(0, end);
  if (ofLoader(name)) return `a project file may not export variables of the dynamic loader (${loaderText})`;
  if (end === -1 || harmless.includes(name)) return null;
  const loads = telling.test(name) || others.includes(name) || ofTools.some((beginning) => name.startsWith(beginning));
  return loads
    ? `a project file may not give ${name} a value: it can decide what code runs or which files are used`
    : null;
}

const loaderText = loader.map((name) => (name.endsWith('_') ? `${name}*` : name)).join(', ');

/** `PREFIX*` is the loader's if one of its variables begins so. */
function ofLoader(name: string): boolean {
  if (!name.endsWith('*')) return loader.some((own) => (own.endsWith('_') ? name.startsWith(own) : name === own));
  const prefix = name.slice(0, -1);
  return loader.some((own) => own.startsWith(prefix) || (own.endsWith('_') && prefix.startsWith(own)));
}
