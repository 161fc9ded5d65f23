/** The TypeScript compiler, which parses the sources and checks the types of mutants. */
import { join } from 'node:path';
import { API, type Project } from 'typescript/unstable/sync';
import { type Mutant, mutantsOf, mutated } from './mutants.ts';

/** The folders whose code has mutants. */
const folders = ['launcher', 'control', 'worker'];

export class Compiler implements Disposable {
  readonly #root: string;
  readonly #configuration: string;
  /** What the compiler reads instead of what is on the disk. */
  readonly #changed = new Map<string, string>();
  readonly #api: API;

  constructor(root: string) {
    this.#root = root;
    this.#configuration = join(root, 'tsconfig.json');
    this.#api = new API({ cwd: root, fs: { readFile: (path) => this.#changed.get(path) } });
    this.#api.updateSnapshot({ openProjects: [this.#configuration] });
  }

  /** The mutants of all files, in the order of their paths. */
  mutants(): Mutant[] {
    const project = this.#project();
    const names = project.program.getSourceFileNames().toSorted();
    return folders.flatMap((folder) => {
      const inside = names.filter((name) => name.startsWith(join(this.#root, folder, '/')) && !name.endsWith('.d.ts'));
      return inside.flatMap((name) => this.#mutantsOf(project, name));
    });
  }

  /** True if the compiler has no complaint about the file with this change. */
  accepts(mutant: Mutant): boolean {
    const path = join(this.#root, mutant.file);
    const text = this.#project().program.getSourceFile(path)?.text;
    if (text === undefined) throw new Error(`${mutant.file}: not in tsconfig.json`);
    this.#changed.set(path, mutated(text, mutant));
    const { program } = this.#project([path]);
    const complaints = [...program.getSyntacticDiagnostics(path), ...program.getSemanticDiagnostics(path)];
    this.#changed.delete(path);
    this.#project([path]);
    return complaints.length === 0;
  }

  #mutantsOf(project: Project, name: string): Mutant[] {
    const tree = project.program.getSourceFile(name);
    return tree === undefined ? [] : mutantsOf(tree, name.slice(this.#root.length + 1));
  }

  #project(changed: readonly string[] = []): Project {
    const changes = { changed: [...changed] };
    const project = this.#api.updateSnapshot({ fileChanges: changes }).getProject(this.#configuration);
    if (project === undefined) throw new Error(`${this.#configuration}: the compiler did not open it`);
    return project;
  }

  [Symbol.dispose](): void {
    this.#api.close();
  }
}
