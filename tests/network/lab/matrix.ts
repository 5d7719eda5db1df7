/** Ways to an address, on links of every kind, for either family and both: each is run from configuration to removal. */
import { dnsmasqServing } from './dnsmasq.ts'
import type { Lab } from './lab.ts'
import { eventually } from './namespaces.ts'

/** Emulated machines are slow; nothing here takes as long on one that is not. */
const timeout = 300_000

/** What a link is made of; the last link of each has the addresses. */
const kinds = {
  plain: { name: 'eth0', documents: [] },
  bridge: { name: 'br7', documents: ['kind: BridgeConfig\nname: br7\nlinks: [eth0]\n'] },
  bond: {
    name: 'bond7',
    documents: ['kind: BondConfig\nname: bond7\nlinks: [eth0]\nbondMode: active-backup\nmiimon: 100\nupdelay: 0\ndowndelay: 0\n'],
  },
  vlan: {
    name: 'eth0.5',
    // Only physical interfaces are up by themselves, and the end of a cable between namespaces is none.
    documents: ['kind: VLANConfig\nname: eth0.5\nvlanID: 5\nparent: eth0\n', 'kind: LinkConfig\nname: eth0\n'],
  },
} as const

/** A kind of links. */
export type LinkKind = keyof typeof kinds

/** All of them. */
export const linkKinds = Object.keys(kinds) as LinkKind[]

type Way = 'dhcp4' | 'static4' | 'slaac' | 'dhcp6' | 'static6'

/** Ways that go together, by the families they serve. */
export const ways: readonly { family: 'v4' | 'v6' | 'dual'; ways: readonly Way[] }[] = [
  { family: 'v4', ways: ['dhcp4'] },
  { family: 'v4', ways: ['static4'] },
  { family: 'v6', ways: ['slaac'] },
  { family: 'v6', ways: ['dhcp6'] },
  { family: 'v6', ways: ['static6'] },
  { family: 'dual', ways: ['dhcp4', 'slaac'] },
  { family: 'dual', ways: ['dhcp4', 'dhcp6'] },
  { family: 'dual', ways: ['static4', 'static6'] },
  { family: 'dual', ways: ['static4', 'slaac'] },
]

/** Whether this kernel makes links of a kind. */
export function offered(lab: Lab, kind: LinkKind): boolean {
  if (kind !== 'bond' && kind !== 'vlan') return true
  try {
    const more = kind === 'vlan' ? { parent: lab.server.indexOf('br0'), data: { id: 9, protocol: 0x8100 } } : {}
    lab.server.addLink({ name: 'scratch', kind, ...more })
    lab.server.removeLink('scratch')
    return true
  } catch {
    return false
  }
}

/** The network: a router that advertises its prefix, and servers of both families, where the link's other end is. */
export async function surround(lab: Lab, kind: LinkKind): Promise<void> {
  let where = 'br0'
  if (kind === 'vlan') {
    where = 'br0.5'
    for (const address of ['10.8.0.1/24', 'fd00:8::1/64']) lab.server.removeAddress({ link: lab.server.indexOf('br0'), address })
    lab.server.addLink({ name: where, kind: 'vlan', parent: lab.server.indexOf('br0'), data: { id: 5, protocol: 0x8100 }, up: true })
    for (const address of ['10.8.0.1/24', 'fd00:8::1/64']) lab.serverAddress(address, where)
  }
  await lab.ready6(where)
  await lab.start(
    dnsmasqServing(
      lab.spaces.folder,
      where,
      'enable-ra',
      `ra-param=${where},high,4`,
      'dhcp-range=10.8.0.50,10.8.0.99,2m',
      'dhcp-option=option:router,10.8.0.1',
      'dhcp-range=fd00:8::100,fd00:8::1ff,slaac,64,2m',
    ),
    /DHCPv6, /,
  )
}

const documentsFor = (name: string, way: Way): string[] => {
  switch (way) {
    case 'dhcp4':
      return [`kind: DHCPv4Config\nname: ${name}\n`]
    case 'dhcp6':
      return [`kind: DHCPv6Config\nname: ${name}\n`]
    default:
      return []
  }
}

/** The link's own document, merged into the one that makes it where there is one. */
function documents(kind: LinkKind, chosen: readonly Way[]): string[] {
  const { name, documents: made } = kinds[kind]
  const [maker, ...others] = made
  const addresses = [
    ...(chosen.includes('static4') ? ['{address: 10.8.0.5/24}'] : []),
    ...(chosen.includes('static6') ? ['{address: "fd00:8::5/64"}'] : []),
  ]
  const routes = [
    ...(chosen.includes('static4') ? ['{gateway: 10.8.0.1}'] : []),
    ...(chosen.includes('static6') ? ['{gateway: "fd00:8::1"}'] : []),
  ]
  const fields = `addresses: [${addresses.join(', ')}]\nroutes: [${routes.join(', ')}]\n`
  const own = maker ? `${maker}${fields}` : `kind: LinkConfig\nname: ${name}\n${fields}`
  return [own, ...others, ...chosen.flatMap((way) => documentsFor(name, way))]
}

const tentative = 0x48 // IFA_F_TENTATIVE, IFA_F_DADFAILED

function reached(lab: Lab, kind: LinkKind, way: Way): boolean {
  const link = lab.node.link(kinds[kind].name)?.index
  const own = lab.node.addresses().filter((found) => found.link === link && found.scope === 0 && (found.flags & tentative) === 0)
  const has = (fits: (address: string) => boolean) => own.some(({ address }) => fits(address))
  const routed = (family: number) =>
    lab.node
      .routes()
      .some((route) => route.family === family && route.destination === undefined && route.table === 254 && route.link === link)
  switch (way) {
    case 'dhcp4':
      return has((address) => /^10\.8\.0\.[5-9]\d\/24$/.test(address)) && routed(2)
    case 'static4':
      return has((address) => address === '10.8.0.5/24') && routed(2)
    case 'slaac':
      return has((address) => address.startsWith('fd00:8:') && address.endsWith('/64') && address !== 'fd00:8::5/64') && routed(10)
    case 'dhcp6':
      return has((address) => /^fd00:8::1[0-9a-f]{2}\/128$/.test(address)) && routed(10)
    case 'static6':
      return has((address) => address === 'fd00:8::5/64') && routed(10)
  }
}

/** One way through: the configuration, a cable out and in, a link set down by hand, and the removal. */
export async function goThrough(lab: Lab, kind: LinkKind, chosen: readonly Way[]): Promise<void> {
  await surround(lab, kind)
  const all = () => chosen.every((way) => reached(lab, kind, way))
  lab.say(...documents(kind, chosen))
  await eventually(all, `${kind}: ${chosen.join(' and ')}`, timeout)
  lab.server.setLink('port0', { up: false })
  await eventually(() => lab.node.link('eth0')?.carrier === false, 'the cable is out', timeout)
  lab.server.setLink('port0', { up: true })
  await eventually(() => lab.node.link('eth0')?.carrier === true && all(), 'all is there again after the cable was out', timeout)
  // With this all that the kernel knows of IPv6 on the link is gone.
  lab.node.setLink(kinds[kind].name, { up: false })
  await eventually(all, 'all is there again after the link was set down by hand', timeout)
  lab.say('kind: LinkConfig\nname: eth0\n')
  const kept: readonly Way[] = chosen.filter((way) => way === 'slaac') // a router's advertisement is valid for its lifetime
  await eventually(() => chosen.filter((way) => !kept.includes(way)).every((way) => !reached(lab, kind, way)), 'all is gone', timeout)
}
