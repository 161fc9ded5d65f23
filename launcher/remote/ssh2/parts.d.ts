// The package declares its types for its index only.
declare module 'ssh2/lib/client.js' {
  import { Client } from 'ssh2';
  export default Client;
}
declare module 'ssh2/lib/protocol/keyParser.js' {
  import { utils } from 'ssh2';
  const parts: { readonly parseKey: typeof utils.parseKey };
  export default parts;
}
declare module 'ssh2/lib/agent.js' {
  import { BaseAgent, OpenSSHAgent } from 'ssh2';
  const parts: { readonly BaseAgent: typeof BaseAgent; readonly OpenSSHAgent: typeof OpenSSHAgent };
  export default parts;
}
