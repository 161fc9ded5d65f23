/** Lists by which users choose interfaces and cards: NCCL_SOCKET_IFNAME, NCCL_IB_HCA (NCCL's documentation, environment variables). */

interface NameList {
  /** What the list names is not to be used. */
  readonly excludes: boolean;
  /** Names are whole, not beginnings. */
  readonly exact: boolean;
  readonly names: readonly { readonly name: string; readonly port: number | null }[];
}

/** `eth,ib0`, `^docker`, `=eth0`, `^=eth0`; with ports `mlx5_0:1`. null: nothing is named. */
export function parseNameList(text: string | undefined): NameList | null {
  const [, excludes = '', exact = '', list = ''] = /^(\^?)(=?)(.*)$/su.exec(text?.trim() ?? '') ?? [];
  const names = list.split(',').flatMap((word) => {
    const [, name = '', port] = /^\s*([^:\s]+)(?::([0-9]+))?\s*$/u.exec(word) ?? [];
    return name === '' ? [] : [{ name, port: port === undefined ? null : Number(port) }];
  });
  return names.length === 0 ? null : { excludes: excludes !== '', exact: exact !== '', names };
}

/** Whether the list lets us use it; `port` null: it has none. */
export function admits({ excludes, exact, names }: NameList, name: string, port: number | null = null): boolean {
  const named = names.some(
    (one) =>
      (exact ? name === one.name : name.startsWith(one.name)) &&
      (one.port === null || port === null || one.port === port),
  );
  return named !== excludes;
}
