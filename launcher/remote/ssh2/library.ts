/** The parts of the package ssh2 that a client needs. Its index would also load servers, HTTP agents and so half of Node. */
import client from 'ssh2/lib/client.js';
import keyParser from 'ssh2/lib/protocol/keyParser.js';
import agents from 'ssh2/lib/agent.js';

export const SshClient = client;
export const { parseKey } = keyParser;
export const { BaseAgent, OpenSSHAgent } = agents;
