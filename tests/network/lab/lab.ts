/** A machine with one cable to a bridge of a namespace that stands for its network, and daemons there. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openCapture } from '../../../src/linux/net/capture.ts'
import type { Network } from '../../../src/linux/net/rtnetlink.ts'
import { MachineConfig } from '../../../src/os/config/resources/machine-config.ts'
import { packetFilter } from '../../../src/wire/packet/filter.ts'
import { addressing, leasing } from './controllers.ts'
import { eventually, kernelOf, Namespaces, running, spawnIn, workerConfig } from './namespaces.ts'

/** The hardware address of the link. */
export const linkAddress = '02:00:00:00:00:05'

export class Lab {
  readonly spaces = new Namespaces()
  readonly node: Network
  readonly server: Network
  readonly machine: ReturnType<typeof running>
  readonly around: string
  readonly nodePath: string
  readonly #captures: { close(): void }[] = []
  readonly #daemons = new Set<ReturnType<typeof spawnIn>>()

  constructor() {
    const path = this.spaces.make('node')
    this.nodePath = path
    this.around = this.spaces.make('server')
    this.node = this.spaces.network(path)
    this.server = this.spaces.network(this.around)
    this.server.addBridge({ name: 'br0', up: true })
    this.server.addVeth({
      name: 'port0',
      master: this.server.indexOf('br0'),
      up: true,
      peer: { name: 'eth0', hardwareAddress: linkAddress },
      peerNetns: path,
    })
    // A cable that is never out: servers ignore a bridge that has nothing to carry.
    this.server.addVeth({ name: 'on0', master: this.server.indexOf('br0'), up: true, peer: { name: 'on1', up: true } })
    for (const address of ['10.8.0.1/24', 'fd00:8::1/64']) this.serverAddress(address)
    const kernel = kernelOf(path, 'container')
    this.machine = running(...addressing(kernel), ...leasing(kernel))
  }

  /** An address of the network, at once. */
  serverAddress(address: string, link = 'br0'): void {
    // IFA_F_NODAD: nobody else is there
    this.server.addAddress({ link: this.server.indexOf(link), address, ...(address.includes(':') && { flags: 2 }) })
  }

  /** A link's own address is sure to be its own: before that no server can be bound to it. */
  async ready6(name = 'br0'): Promise<void> {
    const index = this.server.indexOf(name)
    const tentative = 0x40 // IFA_F_TENTATIVE
    await eventually(
      () =>
        this.server
          .addresses()
          .some(({ link, scope, family, flags }) => link === index && family === 10 && scope === 253 && !(flags & tentative)),
      'the server has its address',
    )
  }

  /** The machine is configured so, and with nothing else. */
  say(...documents: string[]): void {
    this.machine.store.put(MachineConfig, 'v1alpha1', workerConfig(...documents))
  }

  /** The machine's own addresses of a family. */
  addresses(family: 'inet4' | 'inet6' = 'inet4'): string[] {
    const number = family === 'inet4' ? 2 : 10
    return this.node.addresses().flatMap((found) => (found.family === number && found.scope === 0 ? [found.address] : []))
  }

  route(destination: string | undefined, family: 'inet4' | 'inet6' = 'inet4') {
    const number = family === 'inet4' ? 2 : 10
    return this.node.routes().find((found) => found.destination === destination && found.table === 254 && found.family === number)
  }

  /** How often the machine has logged this message. */
  logged(message: string): number {
    return this.machine.entries.filter((entry) => entry.message === message).length
  }

  /** Gives the frames that pass the machine's cable from now on, of those a filter lets through. */
  capture(filter: string, receive: (frame: Uint8Array) => void): void {
    const port = { index: this.server.indexOf('port0'), name: 'port0' }
    const only = packetFilter(filter).map((one) => [...one])
    this.#captures.push(openCapture(port, (frame) => receive(Buffer.from(frame)), { netns: this.around, filter: only }))
  }

  /** Starts a daemon of the network and waits until its output shows that it is ready. */
  async start(argv: string[], ready: RegExp): Promise<ReturnType<typeof spawnIn>> {
    const daemon = spawnIn(this.around, argv)
    this.#daemons.add(daemon)
    let text = ''
    const follow = async (stream: ReadableStream<Uint8Array>) => {
      for await (const chunk of stream) {
        text += Buffer.from(chunk).toString()
        if (process.env.SHOW) process.stderr.write(chunk)
      }
    }
    void follow(daemon.stdout)
    void follow(daemon.stderr)
    await eventually(() => {
      if (daemon.exitCode !== null) throw new Error(`${argv[0]} ended: ${text}`)
      return ready.test(text)
    }, `${argv[0]} is ready`)
    return daemon
  }

  async stop(daemon: ReturnType<typeof spawnIn>): Promise<void> {
    daemon.kill('SIGKILL')
    await daemon.exited
    this.#daemons.delete(daemon)
  }

  file(name: string, text: string): string {
    const path = join(this.spaces.folder, name)
    writeFileSync(path, text)
    return path
  }

  async close(): Promise<void> {
    if (process.env.SHOW)
      for (const { time, level, message, fields } of this.machine.entries)
        console.log(time.toISOString(), level, message, JSON.stringify(fields))
    this.machine.stop()
    for (const capture of this.#captures) capture.close()
    for (const daemon of this.#daemons) await this.stop(daemon)
    this.spaces.close()
  }
}
