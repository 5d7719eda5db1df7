/** Connections that come faster than they are accepted, from a process of its own: the server goes on with everything else. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { silent } from '../../../src/cosi/log.ts'
import { Store } from '../../../src/cosi/store.ts'
import { tlsKey } from '../../../src/pki/key.ts'
import { connect } from '../../../src/rpc/client/channel.ts'
import { acceptBurst, acceptsPerSecond } from '../../../src/rpc/http2/limits.ts'
import { unary } from '../../../src/rpc/server/method.ts'
import { type Server, serveTls } from '../../../src/rpc/server/server.ts'
import { authority, clientCertificate, identityOf } from '../../programs/apid/nodes.ts'
import { runs } from '../../support/runs.ts'

/** How long the flood lasts: at least as long as it takes to exceed what is accepted at once. */
const milliseconds = Math.max(500, runs(2000))
/** Sends nothing on any connection, and replaces each closed one at once. */
const flood = (port: number, connections: number) => `
  const again = () => Bun.connect({ hostname: '127.0.0.1', port: ${port}, socket: { data() {}, error() {}, close: again, connectError: again } }).catch(() => {})
  for (let n = 0; n < ${connections}; n++) again()
  setTimeout(() => process.exit(0), ${milliseconds})
`

/** Counts what a listener of the runtime accepts. */
class Accepted {
  count = 0
  #first = 0
  /** How many have been accepted at some moment beyond those that its rate allows until then. */
  burst = 0
  readonly listen = ((options: Bun.TCPSocketListenOptions<unknown>) => {
    const { socket } = options
    const open = (opened: Bun.Socket<unknown>): void | Promise<void> => {
      this.#add()
      return socket.open?.(opened)
    }
    return runtimeListen({ ...options, socket: { ...socket, open } })
  }) as typeof Bun.listen

  #add(): void {
    const now = performance.now()
    if (this.count++ === 0) this.#first = now
    this.burst = Math.max(this.burst, this.count - ((now - this.#first) / 1000) * acceptsPerSecond)
  }
}

const runtimeListen = Bun.listen
const accepted = new Accepted()
let server: Server
beforeAll(async () => {
  Bun.listen = accepted.listen
  const methods = [unary('machine.MachineService/Version', 'anyone', () => ({ messages: [] }))]
  const { certificate: cert, key } = identityOf('127.0.0.1', 'controlplane').server
  const tls = { cert, key, ca: authority.crt, clients: 'required' as const }
  server = await serveTls({ port: 0, host: '127.0.0.1' }, tls, { methods, store: new Store(), log: silent, roles: () => new Set<never>() })
})
afterAll(async () => {
  await server.close()
  Bun.listen = runtimeListen
})

test('who is connected is answered, and the server still listens after it', async () => {
  const { crt: cert, key } = clientCertificate(['os:reader'])
  const tls = { cert, key: tlsKey(key), ca: authority.crt }
  const channel = connect({ address: `127.0.0.1:${server.port}`, tls })
  const version = () => channel.unary('machine.MachineService/Version', {})
  await version()
  accepted.count = 0
  const attacker = Bun.spawn([process.execPath, '-e', flood(server.port, 1500)], { stderr: 'inherit' })
  let over = false
  const ended = attacker.exited.then(() => {
    over = true
  })
  let answers = 0
  for (; !over; answers++) {
    await Promise.race([version(), ended])
    await Bun.sleep(10)
  }
  expect(answers).toBeGreaterThan(0)
  // The runtime accepts what is pending before it does anything else: nothing but the limit keeps it from accepting all.
  expect(accepted.count).toBeGreaterThanOrEqual(acceptBurst)
  expect(accepted.burst).toBeLessThanOrEqual(acceptBurst + 1)
  const later = connect({ address: `127.0.0.1:${server.port}`, tls })
  // It accepts nobody for a moment after the last burst.
  const greeted = () => later.unary('machine.MachineService/Version', {}).catch(() => undefined)
  while ((await greeted()) === undefined) await Bun.sleep(20)
  for (const each of [channel, later]) each.close()
}, 30_000)
