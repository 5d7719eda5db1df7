/**
 * Sockets of a node inside a test: paths lead below its folder, ports to ports of the test, and what the node connects to answers:
 * two containerds, the API server, apid and other servers that only listen.
 */
import { join } from 'node:path'
import type { Assembled } from '../../../src/programs/init/assemble.ts'
import { openSockets } from '../../../src/programs/init/sockets.ts'
import { type Channel, connect } from '../../../src/rpc/client/channel.ts'
import { serveUnix } from '../../../src/rpc/server/server.ts'
import { ScriptedContainerd } from '../../supervise/scripted-containerd.ts'
import { type Fails, replaceSockets, restoreSockets, SocketFaults } from '../runtime-sockets.ts'

/** What others than init listen on. */
const listeners = [50_000, 50_001]

/** The sockets of one node. */
export class SandboxSockets {
  readonly faults = new SocketFaults()
  readonly #root: string
  readonly #closing: (() => unknown)[] = []
  readonly #ports = new Map<number, number>()

  private constructor(root: string) {
    this.#root = root
  }

  /** Replaces the sockets of the runtime, and lets those of a node with this root fail. */
  static async open(root: string, fails: Fails): Promise<SandboxSockets> {
    // A test that was cut off has left its own; others than the node use the real ones.
    restoreSockets()
    const here = new SandboxSockets(root)
    for (const path of ['/system/run/containerd/containerd.sock', '/run/containerd/containerd.sock']) {
      const daemon = await new ScriptedContainerd(join(root, path)).start()
      // Calls of a process are attributed to the service that it belongs to: the client of a test is apid.
      const { pidOf } = daemon
      daemon.pidOf = (id) => (id === 'apid' ? process.pid : pidOf(id))
      here.#closing.push(() => daemon.close())
    }
    const api = Bun.serve({ hostname: '127.0.0.1', port: 0, fetch: () => Response.json({ metadata: {}, items: [] }) })
    here.#ports.set(6443, api.port!)
    here.#closing.push(() => api.stop(true))
    for (const port of listeners) {
      const server = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
      here.#ports.set(port, server.port)
      here.#closing.push(() => server.stop(true))
    }
    here.faults.choose(fails)
    const tcp = ({ port }: { port: number }) => ({ hostname: '127.0.0.1', port: here.#portOf(port) })
    replaceSockets((use) => here.faults.fails(use.replace(root, '')), {
      unix: (path) => (path.startsWith(root) ? path : join(root, path)),
      tcp,
      url(text) {
        const url = new URL(text)
        if (url.port === '') return text
        url.protocol = 'http:'
        url.host = `127.0.0.1:${here.#portOf(Number(url.port))}`
        return url.href
      },
    })
    return here
  }

  /** Opens the sockets of init. */
  async serve(machine: Assembled): Promise<void> {
    const servers = await openSockets(machine, ({ path }, options) => serveUnix({ path: join(this.#root, path) }, options))
    for (const server of servers) this.#closing.push(() => server.close())
  }

  /** A client of the machine API, with the rights of apid. */
  client(): Channel {
    const metadata = { 'talos-role': ['os:admin'] }
    return connect({ unix: '/system/run/machined/machine.sock' }, { metadata, connectTimeout: 2_000 })
  }

  async close(): Promise<void> {
    this.faults.choose()
    restoreSockets()
    for (const close of this.#closing) await close()
  }

  /** The port of the test in the place of one of the node. */
  #portOf(port: number): number {
    if (port === 0) return 0
    let own = this.#ports.get(port)
    if (own === undefined) {
      const free = Bun.listen({ hostname: '127.0.0.1', port: 0, socket: { data() {} } })
      own = free.port
      free.stop(true)
      this.#ports.set(port, own)
    }
    return own
  }
}
