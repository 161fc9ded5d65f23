/** The grammars that hosts can be written in. Apart from their printers, so that the option table loads no more than this. */
export const grammarNames = ['openmpi', 'mpich', 'deepspeed', 'horovod', 'slurm', 'pdsh', 'json'] as const;
export type GrammarName = (typeof grammarNames)[number];
