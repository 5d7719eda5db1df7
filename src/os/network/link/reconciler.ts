import type { Logger } from '../../../cosi/log.ts'
import type { SpecOf } from '../../../cosi/resource.ts'
import type { Link, LinkData, Network } from '../../../linux/net/rtnetlink.ts'
import { messageOf } from '../../../wire/error-message.ts'
import type { Kernel } from '../../kernel.ts'
import type { LinkSpec } from '../resources/link.ts'
import { changedData, linkData } from './data.ts'
import { wireguardChange } from './wireguard.ts'

type Spec = SpecOf<typeof LinkSpec>
type Netlink = Pick<Network, 'links' | 'addLink' | 'setLink' | 'removeLink'>

const IFF_UP = 1
const IFF_MULTICAST = 0x1000

/** Bond settings that can change only while the bond is down, and those that can change only while it has no members. */
const bondDown = new Set(['lacpRate', 'adLacpActive', 'adSelect', 'adActorSysPrio', 'adUserPortKey', 'tlbLogicalLb'])
const bondEmpty = new Set(['mode', 'failOverMac'])

/**
 * Reconciles links with their specs by the smallest change. It records which links it created and enslaved, so that only
 * these are undone when their spec is removed.
 */
export class LinkReconciler {
  readonly #made = new Map<string, string>()
  readonly #members = new Map<string, string>()
  /** Endpoints already configured, by link and peer. */
  readonly #endpoints = new Map<string, Map<string, string>>()
  readonly #wireguard: Kernel['wireguard'] | undefined
  #retry = false
  #quiet = 0

  constructor(wireguard?: Kernel['wireguard']) {
    this.#wireguard = wireguard
  }

  /** Number of changes to links for which the kernel sends no notification. */
  get quietChanges(): number {
    return this.#quiet
  }

  /** Runs one pass. Returns true if another pass is needed later. Throws the collected errors after everything else was applied. */
  converge(network: Netlink, specs: readonly Spec[], log: Logger): boolean {
    this.#retry = false
    const failures: string[] = []
    const attempt = (act: () => void) => {
      try {
        act()
      } catch (error) {
        failures.push(messageOf(error))
      }
    }
    const desiredByName = new Map(specs.map((desired) => [desired.name, desired]))
    let links = byName(network)
    const look = () => {
      links = byName(network)
    }
    for (const [name, kind] of this.#made) {
      if (desiredByName.get(name)?.kind === kind) continue
      attempt(() => {
        if (links.get(name)?.kind === kind) {
          log.info('removing link', { link: name, kind })
          network.removeLink(name)
        }
        this.#made.delete(name)
      })
    }
    look()
    for (const desired of inOrderOfMaking(specs)) {
      attempt(() => {
        if (!this.#make(network, desired, links, log)) return
        look()
      })
    }
    for (const desired of inOrderOfMaking(specs)) attempt(() => this.#settings(network, desired, links, log) && look())
    for (const desired of specs) attempt(() => this.#membership(network, desired, links, log) && look())
    for (const [name, master] of this.#members) {
      const spec = desiredByName.get(name)
      if (spec && masterOf(spec) !== '') continue
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
    for (const desired of specs) attempt(() => this.#state(network, desired, links, log))
    if (failures.length > 0) throw new Error(failures.join('; '))
    return this.#retry
  }

  #make(network: Netlink, desired: Spec, links: Map<string, Link>, log: Logger): boolean {
    if (!desired.logical) return false
    const { name, kind, hardwareAddr } = desired
    const there = links.get(name)
    const parent = desired.parentName === undefined ? undefined : links.get(desired.parentName)
    if (desired.parentName !== undefined && !parent) return false // the parent's creation triggers a reconcile
    if (there) {
      if (there.kind !== kind)
        throw new Error(
          `make link "${name}": there is one of kind "${there.kind || 'physical'}" already: give yours of kind "${kind}" another name`,
        )
      // ID and parent of a VLAN cannot change: it is recreated.
      const same =
        kind !== 'vlan' || (there.parent === parent?.index && Object.keys(changedData(linkData(desired), there.data)).length === 0)
      if (same) return false
      log.info('removing link', { link: name, kind })
      network.removeLink(name)
    }
    log.info('creating link', { link: name, kind })
    const { primary, ...all } = linkData(desired) // a bond's primary is set once it is a member
    // A new bridge has every option off. A kernel without VLAN filtering rejects even an explicit "off".
    const data = kind === 'bridge' ? Object.fromEntries(Object.entries(all).filter(([, value]) => value !== 0)) : all
    network.addLink({
      name,
      kind,
      ...(Object.keys(data).length > 0 && { data }),
      ...(parent && { parent: parent.index }),
      ...(hardwareAddr && { hardwareAddress: hardwareAddr }),
    })
    this.#made.set(name, kind)
    this.#endpoints.delete(name)
    return true
  }

  #settings(network: Netlink, desired: Spec, links: Map<string, Link>, log: Logger): boolean {
    const { name, mtu, hardwareAddr, multicast } = desired
    const link = links.get(name)
    if (!link) return false
    const change = {
      ...(mtu && link.mtu !== mtu && { mtu }),
      ...(hardwareAddr && link.hardwareAddress !== hardwareAddr && { hardwareAddress: hardwareAddr }),
      ...(multicast !== undefined && ((link.flags & IFF_MULTICAST) !== 0) !== multicast && { multicast }),
    }
    let changed = Object.keys(change).length > 0
    if (changed) {
      log.info('changing link', { link: name, ...change })
      network.setLink(name, change)
    }
    const data = desired.logical && link.kind === desired.kind && link.kind !== 'vlan' ? changeable(desired, link, links) : {}
    if (Object.keys(data).length > 0) {
      log.info('changing link', { link: name, ...data })
      if (link.kind === 'bond') rebond(network, link, data, links)
      else network.setLink(name, { kind: link.kind, data })
      changed = true
    }
    if (desired.wireguard && link.kind === 'wireguard' && this.#wireguard) {
      const configured = this.#endpoints.get(name)
      const device = { ...this.#wireguard.wireguardDevice(link.index), index: link.index }
      const change = wireguardChange(desired.wireguard, device, { configured })
      if (change) {
        log.info('changing wireguard', { link: name, peers: change.peers?.length ?? 0 })
        this.#wireguard.setWireguard(change)
        this.#quiet++
      }
      // A postponed endpoint change is not recorded as configured yet.
      const held = ({ publicKey, endpoint }: { publicKey: string; endpoint: string }) => {
        const before = configured?.get(publicKey)
        if (before === undefined || before === endpoint || device.peers.find((peer) => peer.publicKey === publicKey)?.endpoint === endpoint)
          return false
        return !change?.peers?.some((peer) => peer.publicKey === publicKey && peer.endpoint === endpoint)
      }
      const peers = desired.wireguard.peers
      this.#endpoints.set(
        name,
        new Map(peers.map((peer) => [peer.publicKey, (held(peer) ? configured?.get(peer.publicKey) : undefined) ?? peer.endpoint])),
      )
      if (peers.some(held)) this.#retry = true
    }
    return changed
  }

  #membership(network: Netlink, desired: Spec, links: Map<string, Link>, log: Logger): boolean {
    const { name } = desired
    const masterName = masterOf(desired)
    const link = links.get(name)
    const master = links.get(masterName)
    if (!masterName || !link || !master) return false // the creation of either link triggers a reconcile
    this.#members.set(name, masterName)
    if (link.master === master.index) return false
    log.info('adding link to master', { link: name, master: masterName })
    // A bond accepts only members that are down, and sets them up itself.
    if (master.kind === 'bond' && (link.flags & IFF_UP) !== 0) network.setLink(name, { up: false })
    network.setLink(name, { master: master.index })
    return true
  }

  #state(network: Netlink, { name, up }: Spec, links: Map<string, Link>, log: Logger): void {
    const link = links.get(name)
    if (!link || ((link.flags & IFF_UP) !== 0) === up) return
    log.info(up ? 'setting link up' : 'setting link down', { link: name })
    network.setLink(name, { up })
  }
}

/** Desired settings that differ and that this kernel supports. A primary is set once it is a member. */
function changeable(desired: Spec, link: Link, links: Map<string, Link>): LinkData {
  const changed = Object.entries(changedData(linkData(desired), link.data)).filter(([name, value]) => {
    if (name === 'primary') return [...links.values()].some(({ index, master }) => index === value && master === link.index)
    return name in link.data || Array.isArray(value)
  })
  return Object.fromEntries(changed)
}

const byName = (network: Netlink) => new Map(network.links().map((link) => [link.name, link]))

const masterOf = ({ masterName, bridgeSlave, vrfSlave }: Spec): string =>
  masterName || bridgeSlave?.masterName || vrfSlave?.masterName || ''

/** Orders links after their parents. A cycle keeps its order and is rejected by the kernel. */
function inOrderOfMaking(specs: readonly Spec[]): Spec[] {
  const left = new Map(specs.map((desired) => [desired.name, desired]))
  const ordered: Spec[] = []
  const take = (desired: Spec) => {
    if (!left.delete(desired.name)) return
    const parent = desired.parentName === undefined ? undefined : left.get(desired.parentName)
    if (parent) take(parent)
    ordered.push(desired)
  }
  for (const desired of specs) take(desired)
  return ordered
}

function rebond(network: Netlink, link: Link, data: LinkData, links: Map<string, Link>): void {
  const names = Object.keys(data)
  const empty = names.some((name) => bondEmpty.has(name))
  const down = (empty || names.some((name) => bondDown.has(name))) && (link.flags & IFF_UP) !== 0
  if (down) network.setLink(link.name, { up: false })
  if (empty) for (const { name, master } of links.values()) if (master === link.index) network.setLink(name, { master: 0 })
  network.setLink(link.name, { kind: 'bond', data })
  if (down) network.setLink(link.name, { up: true })
}
