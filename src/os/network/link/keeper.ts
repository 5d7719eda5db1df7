import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Link, LinkData, Network } from '../../../linux/net/rtnetlink.ts'
import type { Kernel } from '../../kernel.ts'
import type { LinkSpec } from '../resources/link.ts'
import { changedData, linkData } from './data.ts'
import { wireguardChange } from './wireguard.ts'

type Spec = SpecOf<typeof LinkSpec>
type Door = Pick<Network, 'links' | 'addLink' | 'setLink' | 'removeLink'>

const UP = 1 // IFF_UP
const MULTICAST = 0x1000 // IFF_MULTICAST

/** Bond settings that can change only while the bond is down, and those that can change only while it has no members. */
const bondDown = new Set(['lacpRate', 'adLacpActive', 'adSelect', 'adActorSysPrio', 'adUserPortKey', 'tlbLogicalLb'])
const bondEmpty = new Set(['mode', 'failOverMac'])

/**
 * Reconciles links with their specs by the smallest change. It records which links it created and enslaved, so that only
 * these are undone when their spec is removed.
 */
export class LinkKeeper {
  readonly #made = new Map<string, string>()
  readonly #members = new Map<string, string>()
  /** Endpoints already configured, by link and peer. */
  readonly #endpoints = new Map<string, Map<string, string>>()
  readonly #wireguard: Kernel['wireguard'] | undefined
  #again = false
  #quiet = 0

  constructor(wireguard?: Kernel['wireguard']) {
    this.#wireguard = wireguard
  }

  /** Number of changes to links for which the kernel sends no notification. */
  get quietChanges(): number {
    return this.#quiet
  }

  /** Runs one pass. Returns true if another pass is needed later. Throws the collected errors after everything else was applied. */
  converge(network: Door, wishes: readonly Spec[], log: Logger): boolean {
    this.#again = false
    const failures: string[] = []
    const attempt = (act: () => void) => {
      try {
        act()
      } catch (error) {
        failures.push(error instanceof Error ? error.message : String(error))
      }
    }
    const wanted = new Map(wishes.map((wish) => [wish.name, wish]))
    let links = byName(network)
    const look = () => {
      links = byName(network)
    }
    for (const [name, kind] of this.#made) {
      if (wanted.get(name)?.kind === kind) continue
      attempt(() => {
        if (links.get(name)?.kind === kind) {
          log.info('removing link', { link: name, kind })
          network.removeLink(name)
        }
        this.#made.delete(name)
      })
    }
    look()
    for (const wish of inOrderOfMaking(wishes)) {
      attempt(() => {
        if (!this.#make(network, wish, links, log)) return
        look()
      })
    }
    for (const wish of inOrderOfMaking(wishes)) attempt(() => this.#settings(network, wish, links, log) && look())
    for (const wish of wishes) attempt(() => this.#membership(network, wish, links, log) && look())
    for (const [name, master] of this.#members) {
      if (wanted.has(name) && masterOf(wanted.get(name)!) !== '') continue
      attempt(() => {
        const link = links.get(name)
        if (link?.master !== undefined && link.master === links.get(master)?.index) {
          log.info('removing link from master', { link: name, master })
          network.setLink(name, { master: 0 })
        }
        this.#members.delete(name)
      })
    }
    look()
    for (const wish of wishes) attempt(() => this.#state(network, wish, links, log))
    if (failures.length > 0) throw new Error(failures.join('; '))
    return this.#again
  }

  #make(network: Door, wish: Spec, links: Map<string, Link>, log: Logger): boolean {
    if (!wish.logical) return false
    const { name, kind, hardwareAddr } = wish
    const there = links.get(name)
    const parent = wish.parentName === undefined ? undefined : links.get(wish.parentName)
    if (wish.parentName !== undefined && !parent) return false // the parent's creation triggers a reconcile
    if (there) {
      if (there.kind !== kind)
        throw new Error(
          `make link "${name}": there is one of kind "${there.kind || 'physical'}" already: give yours of kind "${kind}" another name`,
        )
      // ID and parent of a VLAN cannot change: it is recreated.
      const same = kind !== 'vlan' || (there.parent === parent?.index && Object.keys(changedData(linkData(wish), there.data)).length === 0)
      if (same) return false
      log.info('removing link', { link: name, kind })
      network.removeLink(name)
    }
    log.info('creating link', { link: name, kind })
    const { primary, ...all } = linkData(wish) // a bond's primary is set once it is a member
    // A new bridge has every option off. A kernel without VLAN filtering rejects even an explicit "off".
    const data = kind === 'bridge' ? Object.fromEntries(Object.entries(all).filter(([, value]) => value !== 0)) : all
    network.addLink({
      name,
      kind,
      ...(Object.keys(data).length > 0 ? { data } : {}),
      ...(parent ? { parent: parent.index } : {}),
      ...(hardwareAddr ? { hardwareAddress: hardwareAddr } : {}),
    })
    this.#made.set(name, kind)
    this.#endpoints.delete(name)
    return true
  }

  #settings(network: Door, wish: Spec, links: Map<string, Link>, log: Logger): boolean {
    const { name, mtu, hardwareAddr, multicast } = wish
    const link = links.get(name)
    if (!link) return false
    const change = {
      ...(mtu && link.mtu !== mtu ? { mtu } : {}),
      ...(hardwareAddr && link.hardwareAddress !== hardwareAddr ? { hardwareAddress: hardwareAddr } : {}),
      ...(multicast !== undefined && ((link.flags & MULTICAST) !== 0) !== multicast ? { multicast } : {}),
    }
    let changed = Object.keys(change).length > 0
    if (changed) {
      log.info('changing link', { link: name, ...change })
      network.setLink(name, change)
    }
    const data = wish.logical && link.kind === wish.kind && link.kind !== 'vlan' ? changeable(wish, link, links) : {}
    if (Object.keys(data).length > 0) {
      log.info('changing link', { link: name, ...data })
      if (link.kind === 'bond') rebond(network, link, data, links)
      else network.setLink(name, { kind: link.kind, data })
      changed = true
    }
    if (wish.wireguard && link.kind === 'wireguard' && this.#wireguard) {
      const told = this.#endpoints.get(name)
      const device = { ...this.#wireguard.wireguardDevice(link.index), index: link.index }
      const change = wireguardChange(wish.wireguard, device, { told })
      if (change) {
        log.info('changing wireguard', { link: name, peers: change.peers?.length ?? 0 })
        this.#wireguard.setWireguard(change)
        this.#quiet++
      }
      // A postponed endpoint change is not recorded as configured yet.
      const held = ({ publicKey, endpoint }: { publicKey: string; endpoint: string }) => {
        const before = told?.get(publicKey)
        if (before === undefined || before === endpoint || device.peers.find((peer) => peer.publicKey === publicKey)?.endpoint === endpoint)
          return false
        return !change?.peers?.some((peer) => peer.publicKey === publicKey && peer.endpoint === endpoint)
      }
      const peers = wish.wireguard.peers
      this.#endpoints.set(name, new Map(peers.map((peer) => [peer.publicKey, held(peer) ? told!.get(peer.publicKey)! : peer.endpoint])))
      if (peers.some(held)) this.#again = true
    }
    return changed
  }

  #membership(network: Door, wish: Spec, links: Map<string, Link>, log: Logger): boolean {
    const { name } = wish
    const masterName = masterOf(wish)
    const link = links.get(name)
    const master = links.get(masterName)
    if (!masterName || !link || !master) return false // the creation of either link triggers a reconcile
    this.#members.set(name, masterName)
    if (link.master === master.index) return false
    log.info('adding link to master', { link: name, master: masterName })
    // A bond accepts only members that are down, and sets them up itself.
    if (master.kind === 'bond' && (link.flags & UP) !== 0) network.setLink(name, { up: false })
    network.setLink(name, { master: master.index })
    return true
  }

  #state(network: Door, { name, up }: Spec, links: Map<string, Link>, log: Logger): void {
    const link = links.get(name)
    if (!link || ((link.flags & UP) !== 0) === up) return
    log.info(up ? 'setting link up' : 'setting link down', { link: name })
    network.setLink(name, { up })
  }
}

/** Desired settings that differ and that this kernel supports. A primary is set once it is a member. */
function changeable(wish: Spec, link: Link, links: Map<string, Link>): LinkData {
  const changed = Object.entries(changedData(linkData(wish), link.data)).filter(([name, value]) => {
    if (name === 'primary') return [...links.values()].some(({ index, master }) => index === value && master === link.index)
    return name in link.data || Array.isArray(value)
  })
  return Object.fromEntries(changed)
}

const byName = (network: Door) => new Map(network.links().map((link) => [link.name, link]))

const masterOf = ({ masterName, bridgeSlave, vrfSlave }: Spec): string =>
  masterName || bridgeSlave?.masterName || vrfSlave?.masterName || ''

/** Orders links after their parents. A cycle keeps its order and is rejected by the kernel. */
function inOrderOfMaking(wishes: readonly Spec[]): Spec[] {
  const left = new Map(wishes.map((wish) => [wish.name, wish]))
  const ordered: Spec[] = []
  const take = (wish: Spec) => {
    if (!left.delete(wish.name)) return
    const parent = wish.parentName === undefined ? undefined : left.get(wish.parentName)
    if (parent) take(parent)
    ordered.push(wish)
  }
  for (const wish of wishes) take(wish)
  return ordered
}

function rebond(network: Door, link: Link, data: LinkData, links: Map<string, Link>): void {
  const names = Object.keys(data)
  const empty = names.some((name) => bondEmpty.has(name))
  const down = (empty || names.some((name) => bondDown.has(name))) && (link.flags & UP) !== 0
  if (down) network.setLink(link.name, { up: false })
  if (empty) for (const { name, master } of links.values()) if (master === link.index) network.setLink(name, { master: 0 })
  network.setLink(link.name, { kind: 'bond', data })
  if (down) network.setLink(link.name, { up: true })
}
