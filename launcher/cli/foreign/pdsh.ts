/** Options of pdsh and of ClusterShell's clush that ncclrun does not have under that name. */
import { foreignTool } from './foreign-option.ts';

const named = 'name the hosts with -H or --hostfile';

export const pdsh = foreignTool('pdsh and clush', 'pdsh', [
  ['-R', 'NAME', 'ignored', 'hosts are reached by ssh', /^ssh$/u],
  ['-R', 'NAME', 'instead', "write --rsh 'CMD', the command that reaches a host"],
  ['-a --all', '', 'instead', named],
  ['-g --group', 'NAME', 'instead', `${named}; ClusterShell prints a group's: -H "$(nodeset -e -S , @{1})"`],
  ['-b --dshbak', '', 'instead', 'write --fold, which shows equal lines of several ranks once'],
]);
