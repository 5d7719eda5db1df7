/** apid: the API gateway. Terminates TLS, authenticates callers by their certificates, forwards calls to this node and others. */

import { daemonFlags, startDaemon } from '../../cosi/daemon.ts'
import { splitHostPort } from '../../wire/host-port.ts'
import { Gateway } from './gateway.ts'
import { watchIdentity } from './identity.ts'

const daemon = {
  name: 'apid',
  usage:
    'usage: apid [--listen <address>:50000] [--backend <machined socket>] [--runtime <resource socket>] [--remote-port 50000] [--verbose]',
  options: {
    listen: { type: 'string', default: ':50000' },
    backend: { type: 'string', default: '/system/run/machined/machine.sock' },
    runtime: { type: 'string', default: '/system/run/apid/runtime.sock' },
    'remote-port': { type: 'string', default: '50000' },
    verbose: { type: 'boolean', default: false },
  },
} as const

/** The program. */
export async function main(args: string[]): Promise<number> {
  const options = daemonFlags(daemon, args)
  if (!options) return 64
  const { log, signal } = startDaemon(options)
  const { host, port } = splitHostPort(options.listen, 50_000)
  const gateway = new Gateway({
    host: host || '::',
    port,
    backend: options.backend,
    remotePort: Number(options['remote-port']),
    log,
    access: (lines) => console.error(lines),
  })
  for await (const identity of watchIdentity(options.runtime, log, signal)) await gateway.become(identity)
  await gateway.close(5_000)
  return 0
}
