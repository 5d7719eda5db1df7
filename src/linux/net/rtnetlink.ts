/** Links, addresses, routes, rules and neighbours of one network namespace. */
import { closeSync, openSync } from 'node:fs'
import { failedWith } from '../../wire/errno.ts'
import { type Address, type AddressChange, addressMessage, readAddress, writeAddress } from '../../wire/netlink/address.ts'
import { type Link, type LinkChange, linkMessage, readLink, writeLink } from '../../wire/netlink/link.ts'
import type { LinkData } from '../../wire/netlink/link-kind.ts'
import { flag } from '../../wire/netlink/message.ts'
import { namespaceIdMessage, readNamespaceId, writeNamespaceId } from '../../wire/netlink/namespace-id.ts'
import { type Neighbour, neighbourMessage, readNeighbour, writeNeighbour } from '../../wire/netlink/neighbour.ts'
import { type Route, type RouteChange, readRoute, routeMessage, writeRoute } from '../../wire/netlink/route.ts'
import { type Rule, readRule, ruleMessage, writeRule } from '../../wire/netlink/rule.ts'
import { SystemError, translated } from '../system-error.ts'
import { NetlinkSocket, netlinkProtocol, watchNetlink } from './netlink-socket.ts'

export type { Address, AddressChange, Link, LinkChange, LinkData, Neighbour, Route, RouteChange, Rule }

/** A new link: its kind, and names instead of indexes for its parent and its master. */
export type NewLink = Omit<LinkChange, 'index'> & { name: string; kind: string }

/** A new veth pair: one end here, the other at `peerNetns` or here too. */
export type NewVeth = Omit<NewLink, 'kind' | 'data' | 'peer'> & { peer: Omit<LinkChange, 'index'> & { name: string }; peerNetns?: string }

/** The network of one namespace: this process's, or the one at `netns` (`/run/netns/x`, `/proc/7/ns/net`). */
export class Network implements Disposable {
  readonly #socket: NetlinkSocket

  constructor({ netns = '' } = {}) {
    this.#socket = new NetlinkSocket(netlinkProtocol.route, { netns })
  }

  /** Every link. */
  links(): Link[] {
    return this.#socket.dump('list links', linkMessage.get, writeLink({})).map(({ body }) => readLink(body))
  }

  /** One link by name or index; undefined when there is none. */
  link(which: string | number): Link | undefined {
    const body = writeLink(typeof which === 'number' ? { index: which } : { name: which })
    try {
      const [answer] = this.#socket.request('get link', subject(which), linkMessage.get, body)
      return answer && readLink(answer.body)
    } catch (error) {
      if (failedWith(error, 'ENODEV')) return undefined
      throw error
    }
  }

  /** The index of a link. Throws ENODEV when there is none. */
  indexOf(which: string | number): number {
    if (typeof which === 'number') return which
    const found = this.link(which)
    if (!found) throw new SystemError('find link', 'ENODEV', subject(which))
    return found.index
  }

  /** Creates a link. */
  addLink(link: NewLink): void {
    this.#socket.request('add link', subject(link.name), linkMessage.new, writeLink(link), flag.create | flag.excl)
  }

  /** Changes a link: up, mtu, name, master (0 for none), namespace, settings of its kind, … */
  setLink(which: string | number, change: Omit<LinkChange, 'index' | 'peer'>): void {
    const body = writeLink({ ...change, index: this.indexOf(which) })
    this.#socket.request('set link', subject(which), linkMessage.new, body)
  }

  /** Removes a link, if it exists. */
  removeLink(which: string | number): void {
    const body = writeLink(typeof which === 'number' ? { index: which } : { name: which })
    try {
      this.#socket.request('remove link', subject(which), linkMessage.del, body)
    } catch (error) {
      if (!failedWith(error, 'ENODEV')) throw error
    }
  }

  /** Creates a veth pair, with its peer in another namespace (by path) when given. */
  addVeth({ peer: { up, ...peer }, peerNetns, ...link }: NewVeth): void {
    const fd = peerNetns === undefined ? undefined : translated('open', peerNetns, () => openSync(peerNetns, 'r'))
    try {
      this.addLink({ ...link, kind: 'veth', peer: { ...peer, namespaceFd: fd } })
    } finally {
      if (fd !== undefined) closeSync(fd)
    }
    if (up === undefined) return
    // The kernel creates the peer first, and a veth cannot be up while its peer is missing (ENOTCONN).
    if (peerNetns === undefined) this.setLink(peer.name, { up })
    else {
      using there = new Network({ netns: peerNetns })
      there.setLink(peer.name, { up })
    }
  }

  /** Creates a bridge. */
  addBridge({ settings = {}, ...link }: Omit<NewLink, 'kind' | 'data'> & { settings?: LinkData }): void {
    this.addLink({ ...link, kind: 'bridge', data: settings })
  }

  /** Moves a link into the namespace at a path, with a new name if given. */
  moveLink(which: string | number, netns: string, name?: string): void {
    const fd = translated('open', netns, () => openSync(netns, 'r'))
    try {
      this.setLink(which, { namespaceFd: fd, name })
    } finally {
      closeSync(fd)
    }
  }

  /** The id of the namespace at a path in this one; -1 when there is none. */
  namespaceId(netns: string): number {
    const fd = translated('open', netns, () => openSync(netns, 'r'))
    try {
      const [answer] = this.#socket.request('get namespace id', subject(netns), namespaceIdMessage.get, writeNamespaceId(fd))
      return answer ? readNamespaceId(answer.body) : -1
    } finally {
      closeSync(fd)
    }
  }

  /** Every address of every link. */
  addresses(): Address[] {
    return this.#socket.dump('list addresses', addressMessage.get, Buffer.alloc(8)).map(({ body }) => readAddress(body))
  }

  /** Adds an address to a link, or updates its flags and lifetimes. */
  addAddress(address: AddressChange): void {
    const what = `"${address.address}" on link ${address.link}`
    this.#socket.request('add address', what, addressMessage.new, writeAddress(address), flag.create | flag.replace)
  }

  /** Removes an address from a link, if it exists. */
  removeAddress(address: AddressChange): void {
    try {
      const what = `"${address.address}" on link ${address.link}`
      this.#socket.request('remove address', what, addressMessage.del, writeAddress(address))
    } catch (error) {
      if (!failedWith(error, 'EADDRNOTAVAIL', 'ENODEV')) throw error
    }
  }

  /** Every route of every table. */
  routes(): Route[] {
    return this.#socket.dump('list routes', routeMessage.get, Buffer.alloc(12)).map(({ body }) => readRoute(body))
  }

  /** Adds a route; EEXIST when there is one for the same destination, table and priority. */
  addRoute(route: RouteChange): void {
    this.#socket.request('add route', routeSubject(route), routeMessage.new, writeRoute(route), flag.create | flag.excl)
  }

  /** Adds a route after those with the same destination, table and priority: it is used when they are unusable. */
  appendRoute(route: RouteChange): void {
    this.#socket.request('append route', routeSubject(route), routeMessage.new, writeRoute(route), flag.create | flag.append)
  }

  /** Adds a route, or replaces the one with the same destination, table and priority. */
  putRoute(route: RouteChange): void {
    this.#socket.request('put route', routeSubject(route), routeMessage.new, writeRoute(route), flag.create | flag.replace)
  }

  /** Removes a route, if it exists. */
  removeRoute(route: RouteChange): void {
    try {
      this.#socket.request('remove route', routeSubject(route), routeMessage.del, writeRoute(route))
    } catch (error) {
      if (!failedWith(error, 'ESRCH', 'ENODEV')) throw error
    }
  }

  /** Every routing rule of IPv4 and IPv6. */
  rules(): Rule[] {
    const all = this.#socket.dump('list rules', ruleMessage.get, Buffer.alloc(12)).map(({ body }) => readRule(body))
    return all.filter(({ family }) => family === 2 || family === 10)
  }

  /** Adds a routing rule. */
  addRule(rule: Partial<Rule>): void {
    this.#socket.request('add rule', subject(rule.priority ?? 'rule'), ruleMessage.new, writeRule(rule), flag.create | flag.excl)
  }

  /** Removes a routing rule, if it exists. */
  removeRule(rule: Partial<Rule>): void {
    try {
      this.#socket.request('remove rule', subject(rule.priority ?? 'rule'), ruleMessage.del, writeRule(rule))
    } catch (error) {
      if (!failedWith(error, 'ENOENT', 'ESRCH')) throw error
    }
  }

  /** Every known neighbour. */
  neighbours(): Neighbour[] {
    return this.#socket.dump('list neighbours', neighbourMessage.get, Buffer.alloc(12)).map(({ body }) => readNeighbour(body))
  }

  /** Adds or changes a neighbour. */
  putNeighbour(neighbour: Partial<Neighbour> & { link: number }): void {
    const body = writeNeighbour(neighbour)
    this.#socket.request('put neighbour', subject(neighbour.address ?? ''), neighbourMessage.new, body, flag.create | flag.replace)
  }

  /** Removes a neighbour, if it exists. */
  removeNeighbour(neighbour: Partial<Neighbour> & { link: number }): void {
    try {
      this.#socket.request('remove neighbour', subject(neighbour.address ?? ''), neighbourMessage.del, writeNeighbour(neighbour))
    } catch (error) {
      if (!failedWith(error, 'ENOENT', 'ENODEV')) throw error
    }
  }

  close(): void {
    this.#socket.close()
  }

  [Symbol.dispose](): void {
    this.close()
  }
}

const subject = (which: string | number) => (typeof which === 'number' ? String(which) : JSON.stringify(which))
const routeSubject = ({ destination = 'default', gateway, link }: RouteChange) =>
  `"${destination}"${gateway === undefined ? '' : ` by ${gateway}`}${link === undefined ? '' : ` on link ${link}`}`

/** Opens the network of a namespace. */
export function openNetwork(options: { netns?: string } = {}): Network {
  return new Network(options)
}

/** What changed; after lost messages anything may have changed. */
export type NetworkSubject = 'links' | 'addresses' | 'routes' | 'rules' | 'neighbours'

const groups: Record<NetworkSubject, number[]> = { links: [1], addresses: [5, 9], routes: [7, 11], rules: [8, 19], neighbours: [3] }
const subjects = new Map<number, NetworkSubject>([
  [linkMessage.new, 'links'],
  [linkMessage.del, 'links'],
  [addressMessage.new, 'addresses'],
  [addressMessage.del, 'addresses'],
  [routeMessage.new, 'routes'],
  [routeMessage.del, 'routes'],
  [ruleMessage.new, 'rules'],
  [ruleMessage.del, 'rules'],
  [neighbourMessage.new, 'neighbours'],
  [neighbourMessage.del, 'neighbours'],
])

/**
 * Yields whenever one of the subjects has changed, until the signal is aborted; the reader re-reads the state then. The first
 * item (all subjects) confirms the subscription.
 */
export async function* watchNetwork(
  what: readonly NetworkSubject[],
  options: { netns?: string; signal?: AbortSignal } = {},
): AsyncGenerator<Set<NetworkSubject>> {
  for await (const event of watchNetlink(
    netlinkProtocol.route,
    what.flatMap((name) => groups[name]),
    options,
  )) {
    if (event.lost) yield new Set(what)
    else {
      const changed = new Set(event.messages.map(({ type }) => subjects.get(type)).filter((name) => name !== undefined))
      if (changed.size > 0) yield changed
    }
  }
}
