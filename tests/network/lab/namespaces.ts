/** Separate network namespaces stand for a machine and its network; nothing outside them is touched. */
import { mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Controller } from '../../../src/cosi/controller.ts'
import { createLogger, type LogEntry } from '../../../src/cosi/log.ts'
import { Runtime } from '../../../src/cosi/runtime.ts'
import { Store } from '../../../src/cosi/store.ts'
import * as files from '../../../src/linux/fs/files.ts'
import { createNetns, removeNetns } from '../../../src/linux/net/netns.ts'
import * as packet from '../../../src/linux/net/packet.ts'
import * as net from '../../../src/linux/net/rtnetlink.ts'
import type { Kernel } from '../../../src/os/kernel.ts'
import { DevicesStatus } from '../../../src/os/runtime/resources/devices-status.ts'

/** A program of this host, undefined when it is not installed. */
export const program = (name: string): string | undefined => Bun.which(name, { PATH: `${process.env.PATH}:/usr/sbin:/sbin` }) ?? undefined

/** The configuration of a worker with only these documents, each without its first line. */
export const workerConfig = (...documents: string[]): string =>
  ['version: v1alpha1\nmachine:\n  type: worker\ncluster: {}\n', ...documents.map((text) => `apiVersion: v1alpha1\n${text}`)].join('---\n')

/** Namespaces that go with `close`. */
export class Namespaces {
  readonly folder = mkdtempSync('/run/ichor-story-')
  readonly #made: string[] = []
  readonly #networks: net.Network[] = []

  make(name: string): string {
    const path = join(this.folder, name)
    createNetns(path)
    this.#made.push(path)
    const network = this.network(path)
    network.setLink('lo', { up: true })
    return path
  }

  network(path: string): net.Network {
    const network = net.openNetwork({ netns: path })
    this.#networks.push(network)
    return network
  }

  close(): void {
    for (const network of this.#networks) network.close()
    for (const path of this.#made) removeNetns(path)
    rmSync(this.folder, { recursive: true, force: true })
  }
}

/** A network in which the ends of veth pairs count as physical interfaces, of which a namespace has none. */
export function withEthernet(network: net.Network): net.Network {
  const links = network.links.bind(network)
  network.links = () => links().map((link) => (link.kind === 'veth' ? { ...link, kind: '' } : link))
  return network
}

/** The kernel interface inside one namespace. */
export function kernelOf(netns: string, mode: Kernel['mode'] = 'metal'): Kernel {
  const own = {
    mode,
    files,
    net: {
      openNetwork: () => net.openNetwork({ netns }),
      watchNetwork: (what: readonly net.NetworkSubject[], options: { signal?: AbortSignal } = {}) =>
        net.watchNetwork(what, { ...options, netns }),
    },
    packet: {
      ...packet,
      openPacket: ((link, what, receive) => packet.openPacket(link, what, receive, { netns })) as typeof packet.openPacket,
      announce: ((link, address) => packet.announce(link, address, { netns })) as typeof packet.announce,
    },
    wireguard: {
      wireguardDevice: () => {
        throw new Error('no WireGuard here')
      },
      setWireguard: () => {},
    },
  }
  return own as unknown as Kernel
}

/** Controllers over a store of their own, their log kept. */
export function running(...controllers: Controller[]) {
  const store = new Store()
  const entries: LogEntry[] = []
  const os = new Runtime(store, { log: createLogger((entry) => entries.push(entry)) })
  store.put(DevicesStatus, 'devices', { ready: true })
  os.register(...controllers)
  os.start()
  return { store, os, entries, stop: () => os.stop() }
}

/** Waits until `probe` gives something that is not undefined or false; the deadline is for machines that are very busy. */
export async function eventually<T>(
  probe: () => T | Promise<T>,
  what: string,
  milliseconds = 120_000,
): Promise<Exclude<NonNullable<T>, false>> {
  const end = performance.now() + milliseconds
  for (;;) {
    const found = await probe()
    if (found !== undefined && found !== null && found !== false) return found as Exclude<NonNullable<T>, false>
    if (performance.now() > end) throw new Error(`not within ${milliseconds} ms: ${what}`)
    await Bun.sleep(5)
  }
}

/** Starts a program in a namespace; the caller kills it. */
export function spawnIn(netns: string, argv: string[]) {
  return Bun.spawn(['nsenter', `--net=${netns}`, ...argv], { stdin: 'ignore', stdout: 'pipe', stderr: 'pipe' })
}
