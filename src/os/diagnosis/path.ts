/** The way out of the machine: gateways and name servers that do not answer. Nothing is sent before an explanation is requested. */
import type { Store } from '../../cosi/store.ts'
import type { Network } from '../../linux/net/rtnetlink.ts'
import { pause } from '../../timing/pause.ts'
import { messageOf } from '../../wire/error-message.ts'
import { neighbourState } from '../../wire/netlink/neighbour.ts'
import { answersQueries } from '../network/public.ts'
import { ResolverStatus } from '../network/resources/resolver.ts'
import { RouteStatus } from '../network/resources/route.ts'
import type { Finding } from './findings.ts'
import { silentParty, type World } from './outside.ts'

/** Milliseconds: a neighbour is given up by the kernel after three probes, one a second; a name server answers sooner. */
const gatewayTimeout = 4_000
const resolverTimeout = 2_000
const interval = 50
/** Gateways and servers that are probed at most. */
const most = 8

/** NTF_USE of rtnetlink: the kernel resolves the address as if it had a packet for it. */
const use = 1
const present = neighbourState.reachable | neighbourState.noArp | neighbourState.permanent

/** Gateways of default routes and name servers that do not answer. */
export async function silentPath({ net }: Pick<World, 'net'>, store: Store, signal?: AbortSignal): Promise<Finding[]> {
  const routes = store.list(RouteStatus).filter(({ spec: { dst, gateway, table } }) => dst === '' && gateway !== '' && table === 'main')
  const servers = store.list(ResolverStatus).flatMap(({ spec }) => spec.dnsServers)
  const findings = await Promise.all([
    ...routes.slice(0, most).map(({ spec }) => silentGateway(net, spec.gateway, spec.outLinkName ?? '', signal)),
    ...[...new Set(servers)].slice(0, most).map(silentResolver),
  ])
  return findings.flat()
}

async function silentGateway(net: World['net'], gateway: string, linkName: string, signal?: AbortSignal): Promise<Finding[]> {
  const subject = `gateway ${gateway} on ${linkName}`
  using network = net.openNetwork()
  const link = network.link(linkName)
  if (!link) return []
  try {
    if (await answers(network, link.index, gateway, signal)) return []
  } catch (error) {
    return [silentParty(subject, 'it could not be probed', messageOf(error))]
  }
  return [silentParty(subject, 'it does not answer: check the cable, the VLAN, the address and the route of this machine')]
}

/** Whether a neighbour answers the kernel's probes (ARP, RFC 826; neighbour discovery, RFC 4861). */
async function answers(network: Network, link: number, address: string, signal?: AbortSignal): Promise<boolean> {
  const entry = () => network.neighbours().find((one) => one.link === link && one.address === address)
  const hardwareAddress = entry()?.hardwareAddress
  // What is known already may be outdated: it is probed again.
  if (hardwareAddress && ((entry()?.state ?? 0) & (neighbourState.noArp | neighbourState.permanent)) === 0)
    network.putNeighbour({ link, address, hardwareAddress, state: neighbourState.probe })
  else if (!hardwareAddress) network.putNeighbour({ link, address, flags: use, state: 0 })
  const end = performance.now() + gatewayTimeout
  while (performance.now() < end && !signal?.aborted) {
    const state = entry()?.state ?? 0
    if ((state & present) !== 0) return true
    if ((state & neighbourState.failed) !== 0) return false
    await pause(interval, signal)
  }
  return false
}

async function silentResolver(server: string): Promise<Finding[]> {
  try {
    await answersQueries(server, resolverTimeout)
    return []
  } catch (error) {
    return [
      silentParty(
        `name server ${server}`,
        'it does not answer: check the name servers of the configuration and the route to them',
        messageOf(error),
      ),
    ]
  }
}
