/**
 * WireGuard links in user space, for kernels without WireGuard: each is a TUN link that the program `wireguard` of this binary runs. What
 * uses the kernel's links uses these the same way. Their state is a copy, read every second, so that init never waits for a program.
 */
import type { Logger } from '../../cosi/log.ts'
import type { Network } from '../../linux/net/rtnetlink.ts'
import type { WireguardChange, WireguardDevice } from '../../linux/net/wireguard.ts'
import type { Kernel } from '../../os/kernel.ts'
import type { Child, Spawn } from '../../supervise/spawn.ts'
import { pause } from '../../timing/pause.ts'
import { messageOf } from '../../wire/error-message.ts'
import { publicKeyOf } from '../../wire/wireguard/keys.ts'
import { readGet, writeSet } from '../../wire/wireguard/uapi.ts'

const usualFolder = '/run/wireguard'
const program = '/usr/bin/wireguard'
/** Milliseconds: between two looks at the state, and after a change, when a handshake is expected; until a program that ended or cannot be reached is tried again, and for an answer. */
const interval = 1000
const soonInterval = 100
const retryInterval = 500
const answerTimeout = 5000
/** Looks after a change that follow each other quickly. */
const soonLooks = 20
/** Changes that wait for the program. */
const maxChanges = 64
const maxAnswer = 8 << 20

type State = Omit<WireguardDevice, 'index'>

const unconfigured: State = { privateKey: '', publicKey: '', listenPort: 0, firewallMark: 0, peers: [] }

/** One link and the program behind it. */
class UserLink {
  state: State = unconfigured
  readonly #stopped = new AbortController()
  #child: Child | undefined
  #changes: string[] = []
  #look = () => {}

  constructor(
    private readonly name: string,
    private readonly spawn: Spawn,
    private readonly log: () => Logger,
    private readonly folder: string,
  ) {}

  /** Keeps the program running until `stop`. */
  async run(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      try {
        const child = this.spawn({ argv: [program, this.name, this.folder], env: {} })
        this.#child = child
        const copied = Promise.allSettled(child.output.map((output) => this.#copy(output)))
        const ended = new AbortController()
        const exited = child.exited.then((status) => {
          ended.abort()
          return status
        })
        await this.#follow(AbortSignal.any([ended.signal, this.#stopped.signal]))
        const { code, signal } = await exited
        await copied
        if (!this.#stopped.signal.aborted) this.log().error('wireguard ended', { link: this.name, code: code ?? '', signal: signal ?? '' })
      } catch (error) {
        this.log().error('run wireguard failed', { link: this.name, error: messageOf(error) })
      }
      this.state = unconfigured
      await pause(retryInterval, this.#stopped.signal)
    }
  }

  /** Ends the program, and the link with it. */
  stop(): void {
    this.#stopped.abort()
    this.#child?.kill('SIGKILL')
  }

  /** Applies a change soon. */
  change(change: Omit<WireguardChange, 'index'>): void {
    this.#changes.push(writeSet(withoutInterruption(change, this.state)))
    this.#look()
  }

  async #copy(output: ReadableStream<Uint8Array>): Promise<void> {
    for await (const bytes of output)
      for (const line of Buffer.from(bytes).toString().split('\n')) if (line) this.log().warn(line, { link: this.name })
  }

  /** Sends changes and reads the state, until the program ends. */
  async #follow(signal: AbortSignal): Promise<void> {
    let soon = 0
    while (!signal.aborted) {
      const changes = this.#changes
      this.#changes = []
      soon = changes.length > 0 ? soonLooks : soon - 1
      let wait = soon > 0 ? soonInterval : interval
      try {
        const answers = await converse(`${this.folder}/${this.name}.sock`, [...changes, 'get=1\n\n'])
        for (const answer of answers.slice(0, -1))
          if (!answer.includes('errno=0')) this.log().error('change wireguard failed', { link: this.name })
        this.state = readGet(answers.at(-1) ?? '', publicKeyOf)
      } catch (error) {
        wait = retryInterval
        this.#changes = [...changes, ...this.#changes].slice(-maxChanges)
        soon = 0
        this.log().debug('read wireguard failed', { link: this.name, error: messageOf(error) })
      }
      if (this.#changes.length > 0 && wait !== retryInterval) continue
      const woken = new AbortController()
      this.#look = () => woken.abort()
      await pause(wait, AbortSignal.any([signal, woken.signal]))
    }
  }
}

/**
 * A change that ends no session that began after the state from which it was computed: the program moves a peer only if it had no
 * handshake since, and starts one at once, for which a peer of the kernel has to be made again.
 */
function withoutInterruption({ peers, ...change }: Omit<WireguardChange, 'index'>, seen: State): Omit<WireguardChange, 'index'> {
  if (!peers) return change
  const handshakes = new Map(seen.peers.map(({ publicKey, lastHandshake }) => [publicKey, lastHandshake]))
  const kept = new Set(peers.filter(({ remove }) => !remove).map(({ publicKey }) => publicKey))
  return {
    ...change,
    peers: peers
      .filter(({ remove, publicKey }) => !remove || !kept.has(publicKey))
      .map((peer) => (peer.endpoint ? { ...peer, ifHandshake: handshakes.get(peer.publicKey) ?? 0 } : peer)),
  }
}

/** Sends requests over one connection; returns their answers. Rejects when the program does not answer in time. */
function converse(path: string, requests: readonly string[]): Promise<string[]> {
  return new Promise((resolve, reject) => {
    let received = ''
    const timer = setTimeout(() => fail(new Error('no answer')), answerTimeout)
    let close = () => {}
    const fail = (error: Error) => {
      clearTimeout(timer)
      close()
      reject(error)
    }
    const waiting = Buffer.from(requests.join(''))
    let sent = 0
    Bun.connect({
      unix: path,
      socket: {
        open(socket) {
          close = () => socket.end()
          sent += Math.max(0, socket.write(waiting))
        },
        drain(socket) {
          if (sent < waiting.length) sent += Math.max(0, socket.write(waiting.subarray(sent)))
        },
        data(_, bytes) {
          received += bytes.toString('latin1')
          const answers = received.split('\n\n')
          if (received.length > maxAnswer) fail(new Error('too long an answer'))
          if (received.length > maxAnswer || answers.length <= requests.length) return
          clearTimeout(timer)
          resolve(answers.slice(0, requests.length))
          close()
        },
        close: () => fail(new Error('the connection ended')),
        error: (_, error) => fail(error),
      },
    }).catch(fail)
  })
}

/** The kernel with WireGuard: its own where it has it, else in user space, with the sockets of its programs in `folder`. */
export function withUserWireguard(kernel: Kernel, spawn: Spawn, log: () => Logger, folder = usualFolder): Kernel {
  const running = new Map<string, UserLink>()
  const own = kernel.wireguard
  const wrapped = (network: Network): Network => {
    const shown = <T extends { name: string; kind: string } | undefined>(link: T): T =>
      link && running.has(link.name) && link.kind === 'tun' ? { ...link, kind: 'wireguard' } : link
    const { links, link, addLink, removeLink } = network
    network.links = () => links.call(network).map(shown)
    network.link = (which) => shown(link.call(network, which))
    network.addLink = (options) => {
      if (options.kind !== 'wireguard' || own.hasWireguard()) {
        addLink.call(network, options)
        return
      }
      if (running.has(options.name)) return // it appears soon
      const user = new UserLink(options.name, spawn, log, folder)
      running.set(options.name, user)
      user.run().catch((error: unknown) => log().error('run wireguard failed', { link: options.name, error: messageOf(error) }))
    }
    network.removeLink = (which) => {
      const name = typeof which === 'string' ? which : (link.call(network, which)?.name ?? '')
      const user = running.get(name)
      if (user) {
        running.delete(name)
        user.stop()
      } else removeLink.call(network, which)
    }
    return network
  }
  const userLink = (index: number): UserLink | undefined => {
    if (running.size === 0) return undefined
    using network = kernel.net.openNetwork()
    return running.get(network.links().find((link) => link.index === index)?.name ?? '')
  }
  return {
    ...kernel,
    net: { ...kernel.net, openNetwork: (...options) => wrapped(kernel.net.openNetwork(...options)) },
    wireguard: {
      ...own,
      wireguardDevice(index) {
        const user = userLink(index)
        return user ? { ...user.state, index } : own.wireguardDevice(index)
      },
      setWireguard({ index, ...change }) {
        const user = userLink(index)
        if (user) user.change(change)
        else own.setWireguard({ index, ...change })
      },
    },
  }
}
