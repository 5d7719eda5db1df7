/** The cluster's network on the host: a bridge with the gateway's address, and for each node a namespace and a cable to the bridge. */

import { existsSync } from 'node:fs'
import { createNetns, removeNetns } from '../../../../linux/net/netns.ts'
import { type Network, openNetwork } from '../../../../linux/net/rtnetlink.ts'
import { createTap } from '../../../../linux/net/tap.ts'
import { isIPv6 } from '../../../../wire/prefix.ts'
import type { Journal } from '../../../node-supervisor/journal.ts'
import type { ClusterRecord, NodeRecord } from '../../../node-supervisor/layout.ts'
import { macOf } from '../../../node-supervisor/node-address.ts'
import { parseCidr } from './cidr.ts'

const nodeLink = 'eth0'
/** IFA_F_NODAD */
const noDuplicateDetection = 2

/** Makes the bridge with its address; one that is there is left as it is. */
export function makeBridge({ network }: ClusterRecord, journal: Journal): void {
  using host = openNetwork()
  const { bridge, mtu, gateway, second } = network
  if (!host.link(bridge)) {
    journal.write({ kind: 'link', name: bridge })
    // No spanning tree and no delay: a port forwards as soon as it is plugged in.
    host.addBridge({ name: bridge, mtu, hardwareAddress: macOf(gateway), settings: { stpState: 0, forwardDelay: 0 } })
  }
  const link = host.indexOf(bridge)
  host.addAddress(addressOn(link, gateway, network.cidr))
  if (second) host.addAddress(addressOn(link, second.gateway, second.cidr))
  host.setLink(link, { up: true })
}

/** Makes a node's namespace with a cable to the bridge, its address and its way out. */
export function plugNode({ network }: ClusterRecord, node: NodeRecord, netns: string, journal: Journal): void {
  using host = openNetwork()
  if (!isNamespace(netns)) {
    // A file without a namespace is what a crash between the two left.
    removeNetns(netns)
    journal.write({ kind: 'netns', path: netns, node: node.name })
    createNetns(netns)
  }
  if (!host.link(node.link)) {
    journal.write({ kind: 'link', name: node.link, node: node.name })
    host.addVeth({
      name: node.link,
      mtu: network.mtu,
      peer: { name: nodeLink, mtu: network.mtu, hardwareAddress: macOf(node.ip) },
      peerNetns: netns,
    })
  }
  host.setLink(node.link, { master: host.indexOf(network.bridge), up: true })
  using inside = openNetwork({ netns })
  inside.setLink('lo', { up: true })
  const link = inside.indexOf(nodeLink)
  const { second } = network
  inside.addAddress(addressOn(link, node.ip, network.cidr))
  if (second && node.secondIp) inside.addAddress(addressOn(link, node.secondIp, second.cidr))
  inside.setLink(link, { up: true })
  inside.putRoute({ gateway: network.gateway, link })
  if (second) inside.putRoute({ gateway: second.gateway, link })
}

/** An address of this plan on a link. It has no duplicate, and an IPv6 address could not be used while the kernel looks for one. */
const addressOn = (link: number, address: string, cidr: string) => ({
  link,
  address: `${address}/${parseCidr(cidr).bits}`,
  ...(isIPv6(address) && { flags: noDuplicateDetection }),
})

/** Creates the TAP link for a virtual machine's network interface, on the bridge. */
export function plugMachine({ network }: ClusterRecord, node: NodeRecord, journal: Journal): void {
  using host = openNetwork()
  if (!host.link(node.link)) {
    journal.write({ kind: 'link', name: node.link, node: node.name })
    createTap(node.link)
  }
  host.setLink(node.link, { master: host.indexOf(network.bridge), mtu: network.mtu, up: true })
}

/** Removes a link; its other end goes with it. Absent is fine. */
export function removeLink(name: string): void {
  using host = openNetwork()
  host.removeLink(name)
}

function isNamespace(path: string): boolean {
  if (!existsSync(path)) return false
  let inside: Network | undefined
  try {
    inside = openNetwork({ netns: path })
    return true
  } catch {
    return false
  } finally {
    inside?.close()
  }
}
